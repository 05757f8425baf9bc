#include "base/line_output.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <utility>

#include "base/uncancelled.h"

namespace weft {
namespace {

constexpr int kLookAgainMs = 100;
static_assert(LineOutput::kLongest <= PIPE_BUF);

// A pipe that nobody reads any more is no reason to end the program. Blocks SIGPIPE, and takes the one that a write
// raised.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigset_t waiting;
    sigpending(&waiting);
    was_pending_ = sigismember(&waiting, SIGPIPE) == 1;
    sigemptyset(&set_);
    sigaddset(&set_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~WithoutSigpipe() {
    const int error = errno;
    const timespec none{};
    if (error == EPIPE && !was_pending_) {
      while (sigtimedwait(&set_, nullptr, &none) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t set_, before_;
  bool was_pending_;
};

// A description of our own of the same pipe or terminal, on which O_NONBLOCK is nobody else's. -1: there is none (no
// /proc, another user's, no descriptor left).
int OpenAgain(int fd) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

// The bytes that were written, or -1 with errno; EAGAIN: there is no room now.
ssize_t WriteAtOnce(int fd, mode_t mode, std::string_view text) {
  if (S_ISREG(mode)) return write(fd, text.data(), text.size());
  if (S_ISSOCK(mode)) return send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  const WithoutSigpipe guard;
  const iovec piece{const_cast<char*>(text.data()), text.size()};
  const ssize_t count = pwritev2(fd, &piece, 1, -1, RWF_NOWAIT);  // pipes of Linux 6.5 and later
  if (count >= 0 || (errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS)) return count;
  if (const int own = OpenAgain(fd); own >= 0) {
    const ssize_t written = write(own, text.data(), text.size());
    const int error = errno;
    close(own);
    errno = error;
    return written;
  }
  // What is left is to ask first. Whoever else fills it between the two makes us wait: for a line of one page, on
  // kernels before 6.5.
  pollfd ready{fd, POLLOUT, 0};
  if (poll(&ready, 1, 0) <= 0) return errno = EAGAIN, -1;
  if ((ready.revents & POLLOUT) == 0) return errno = EPIPE, -1;
  return write(fd, text.data(), text.size());
}

bool NoRoom(ssize_t count) { return count < 0 && (errno == EAGAIN || errno == EINTR); }

}  // namespace

struct LineOutput::State {
  std::mutex mutex;  // guards the rest; not held over a write
  std::condition_variable emptied;
  std::string kept;
  uint64_t left_out = 0;
  bool thread_runs = false;
  std::shared_ptr<State> of_parent;  // stays reachable, and untouched
  std::atomic<bool> keeps{
      false};  // there is something in `kept`, or it is just being written: later lines come behind it

  // With the mutex held.
  void NoteLeftOut() {
    if (left_out == 0) return;
    kept += "weft: " + std::to_string(left_out) + " lines were dropped here, because they were not read in time\n";
    left_out = 0;
  }

  // Writes what is kept, on the thread, until nothing is.
  void Empty(int fd, mode_t mode) {
    std::unique_lock lock(mutex);
    while (!kept.empty()) {
      const size_t line_end = kept.rfind('\n', kLongest - 1);
      const std::string chunk = kept.substr(0, line_end == kept.npos ? kLongest : line_end + 1);
      lock.unlock();
      const ssize_t count = WriteAtOnce(fd, mode, chunk);
      const bool no_room = NoRoom(count);
      if (no_room) {
        pollfd ready{fd, POLLOUT, 0};
        const timespec pause{0, 2'000'000};  // a descriptor may say that it is ready, and take nothing
        if (poll(&ready, 1, kLookAgainMs) != 0) nanosleep(&pause, nullptr);
      }
      lock.lock();
      if (!no_room) kept.erase(0, count > 0 ? static_cast<size_t>(count) : kept.size());
      if (kept.empty() && count > 0) NoteLeftOut();
    }
    left_out = 0;
    thread_runs = false;
    keeps.store(false, std::memory_order_release);
    emptied.notify_all();
  }
};

LineOutput::LineOutput(int fd) : fd_(fd), state_(std::make_shared<State>()) { was_open_ = fstat(fd_, &at_start_) == 0; }
LineOutput::~LineOutput() = default;

bool LineOutput::IsForUs(const struct stat& now) const {
  const bool same = was_open_ && now.st_dev == at_start_.st_dev && now.st_ino == at_start_.st_ino;
  switch (now.st_mode & S_IFMT) {
    case S_IFCHR:
      return true;
    case S_IFSOCK:
      return same;
    case S_IFIFO:
      return was_open_;
    case S_IFREG:
      // Without a stderr the program's next file gets its number, unless it is a log.
      return was_open_ || (fcntl(fd_, F_GETFL) & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND);
    default:
      return false;  // an event descriptor, a directory, a disk
  }
}

void LineOutput::Write(std::string_view line) {
  if (line.empty()) return;
  const uncancelled::Scope scope;
  const int error = errno;
  std::string cut;
  if (line.size() > kLongest) {
    constexpr std::string_view kEnd = " ...\n";
    cut = std::string(line.substr(0, kLongest - kEnd.size())) + std::string(kEnd);
    line = cut;
  }
  struct stat now;
  if (fstat(fd_, &now) == 0 && IsForUs(now)) {
    if (state_->keeps.load(std::memory_order_acquire)) {
      Keep(line, /*first=*/false);
    } else {
      const ssize_t count = WriteAtOnce(fd_, now.st_mode, line);
      if (NoRoom(count)) {
        Keep(line, /*first=*/false);
      } else if (count > 0 && static_cast<size_t>(count) < line.size() && !S_ISREG(now.st_mode)) {
        Keep(line.substr(static_cast<size_t>(count)), /*first=*/true);
      }
    }
  }
  errno = error;
}

void LineOutput::Keep(std::string_view rest, bool first) {
  std::lock_guard lock(state_->mutex);
  state_->keeps.store(true, std::memory_order_release);
  if (state_->kept.size() + rest.size() > kMostKept) {
    ++state_->left_out;
  } else if (first) {
    state_->kept.insert(0, rest);
  } else {
    state_->NoteLeftOut();
    state_->kept += rest;
  }
  StartThread();
}

// Requires the mutex.
void LineOutput::StartThread() {
  if (state_->thread_runs) return;
  struct Task {
    std::shared_ptr<State> state;
    int fd;
    mode_t mode;
  };
  struct stat now;
  auto* task = new Task{state_, fd_, fstat(fd_, &now) == 0 ? now.st_mode : at_start_.st_mode};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, before;  // the program's handlers run on its own threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    const std::unique_ptr<Task> mine(static_cast<Task*>(argument));
    mine->state->Empty(mine->fd, mine->mode);
    return nullptr;
  };
  state_->thread_runs = pthread_create(&thread, &attributes, run, task) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (state_->thread_runs) return;
  delete task;  // the next line tries again
}

bool LineOutput::Drain(std::chrono::milliseconds limit) {
  std::unique_lock lock(state_->mutex);
  return state_->emptied.wait_for(lock, limit, [&] { return !state_->thread_runs; }) && state_->kept.empty();
}

LineOutput& LineOutput::Stderr() {
  static LineOutput* const output = [] {
    auto* made = new LineOutput(STDERR_FILENO);
    // The child has no such thread, and a lock that another thread held stays held.
    pthread_atfork(nullptr, nullptr, [] {
      LineOutput& mine = Stderr();
      auto fresh = std::make_shared<State>();
      fresh->of_parent = mine.state_;
      mine.state_ = std::move(fresh);
    });
    return made;
  }();
  return *output;
}

namespace {

__attribute__((constructor)) void Begin() { LineOutput::Stderr(); }
}  // namespace
}  // namespace weft
