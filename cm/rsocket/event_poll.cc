#include "cm/rsocket/event_poll.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cm/rsocket/poll.h"

namespace weft::rsocket {
namespace {

// Those of this process, by number. A fork's child has none of its parent's.
struct Registry {
  static Registry& Process() {
    static Registry* const registry = [] {
      pthread_atfork(nullptr, nullptr, [] {
        new (&Process().mutex) std::mutex;
        new (&Process().polls) decltype(polls);
      });
      return new Registry;
    }();
    return *registry;
  }

  std::mutex mutex;  // guards polls
  std::unordered_map<int, std::shared_ptr<EventPoll>> polls;
};

// epoll and poll have the same bits for these.
static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLPRI == POLLPRI && EPOLLERR == POLLERR && EPOLLHUP == POLLHUP);
constexpr uint32_t kPolled = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP;
constexpr uint32_t kAlways = EPOLLERR | EPOLLHUP;

void Wake(int fd) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd, &one, sizeof one);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

}  // namespace

int EventPoll::Create(bool close_on_exec, int* fd) {
  const int number = eventfd(0, close_on_exec ? EFD_CLOEXEC : 0);
  if (number < 0) return errno;
  std::lock_guard lock(Registry::Process().mutex);
  Registry::Process().polls[number] = std::make_shared<EventPoll>();
  *fd = number;
  return 0;
}

std::shared_ptr<EventPoll> EventPoll::Find(int fd) {
  std::lock_guard lock(Registry::Process().mutex);
  const auto at = Registry::Process().polls.find(fd);
  return at != Registry::Process().polls.end() ? at->second : nullptr;
}

bool EventPoll::Close(int fd) {
  std::shared_ptr<EventPoll> poll;
  {
    std::lock_guard lock(Registry::Process().mutex);
    const auto at = Registry::Process().polls.find(fd);
    if (at == Registry::Process().polls.end()) return false;
    poll = std::move(at->second);
    Registry::Process().polls.erase(at);
    close(fd);
  }
  std::lock_guard lock(poll->mutex_);
  poll->closed_ = true;
  for (const int waiting : poll->waiting_) Wake(waiting);
  return true;
}

int EventPoll::Control(int operation, int fd, const epoll_event* event) {
  std::lock_guard lock(mutex_);
  const auto at = interests_.find(fd);
  switch (operation) {
    case EPOLL_CTL_ADD:
      if (at != interests_.end()) return EEXIST;
      interests_[fd] = {.events = event->events | kAlways, .data = event->data};
      break;
    case EPOLL_CTL_MOD:
      if (at == interests_.end()) return ENOENT;
      at->second = {.events = event->events | kAlways, .data = event->data};
      break;
    case EPOLL_CTL_DEL:
      if (at == interests_.end()) return ENOENT;
      interests_.erase(at);
      break;
    default:
      return EINVAL;
  }
  for (const int waiting : waiting_) Wake(waiting);
  return 0;
}

// What was polled may have left the list meanwhile, or may be in it for something else now.
int EventPoll::Report(const pollfd* fds, size_t size, epoll_event* events, int count) {
  std::lock_guard lock(mutex_);
  size_t first = 0;
  while (first < size && fds[first].fd <= turn_) ++first;
  int reported = 0;
  for (size_t i = 0; i < size && reported < count; ++i) {
    const pollfd& polled = fds[(first + i) % size];
    const auto at = interests_.find(polled.fd);
    if (at == interests_.end()) continue;
    if ((polled.revents & POLLNVAL) != 0) {
      interests_.erase(at);
      continue;
    }
    const uint32_t shown = static_cast<unsigned short>(polled.revents) & at->second.events;
    if (shown == 0) continue;
    events[reported].events = shown;
    events[reported].data = at->second.data;
    ++reported;
    turn_ = polled.fd;
    if ((at->second.events & EPOLLONESHOT) != 0) at->second.events = 0;
  }
  return reported;
}

int EventPoll::Wait(epoll_event* events, int count, const Deadline& deadline) {
  const Descriptor changed(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (changed.get() < 0) return -errno;
  std::list<int> mine{changed.get()};
  {
    std::lock_guard lock(mutex_);
    waiting_.splice(waiting_.end(), mine, mine.begin());
  }
  const auto place = [this, &changed] {
    auto at = waiting_.begin();
    while (*at != changed.get()) ++at;
    return at;
  };
  int result = 0;
  std::vector<pollfd> fds;
  for (;;) {
    fds.clear();
    {
      std::lock_guard lock(mutex_);
      if (closed_) {
        result = -EBADF;
        break;
      }
      uint64_t changes;
      [[maybe_unused]] const ssize_t taken = read(changed.get(), &changes, sizeof changes);
      interests_.erase(changed.get());  // whatever had this number was closed
      for (const auto& [fd, interest] : interests_) {
        if (interest.events != 0) fds.push_back({fd, static_cast<short>(interest.events & kPolled), 0});
      }
    }
    fds.push_back({changed.get(), POLLIN, 0});
    const int ready = PollAll(fds.data(), fds.size(), deadline);
    if (ready < 0) {
      result = ready;
      break;
    }
    result = Report(fds.data(), fds.size() - 1, events, count);
    if (result != 0 || Passed(deadline)) break;
  }
  std::lock_guard lock(mutex_);
  waiting_.erase(place());
  return result;
}

}  // namespace weft::rsocket
