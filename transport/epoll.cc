#include "transport/epoll.h"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>

#include "base/high_descriptor.h"
#include "base/uncancelled.h"

namespace weft::transport {
namespace {

#ifdef SYS_epoll_pwait2
constexpr long kEpollPwait2 = SYS_epoll_pwait2;
#else
constexpr long kEpollPwait2 = 441;  // the same on every architecture
#endif

uint32_t EventsFor(Interest interest) {
  // Errors are reported whether asked for or not, and for as long as they last: edge-triggered, a watch that wants
  // nothing hears of one once and does not keep the thread spinning.
  if (interest == Interest{}) return EPOLLET;
  return (interest.read ? EPOLLIN : 0u) | (interest.write ? EPOLLOUT : 0u);
}

// Cleared for ever where the kernel has no epoll_pwait2 (5.11) or something forbids it.
std::atomic<bool> g_has_nanoseconds{true};

}  // namespace

EpollSet::~EpollSet() {
  if (fd_ >= 0) uncancelled::Close(fd_);
}

int EpollSet::Open() {
  if (fd_ < 0) fd_ = LeaveRoomForSelect(epoll_create1(EPOLL_CLOEXEC));
  return fd_ < 0 ? errno : 0;
}

int EpollSet::Control(int operation, int fd, Interest interest, uint64_t key) {
  epoll_event event{.events = EventsFor(interest), .data = {.u64 = key}};
  return epoll_ctl(fd_, operation, fd, &event) == 0 ? 0 : errno;
}

std::span<const epoll_event> EpollSet::Wait(std::span<epoll_event> storage, Time deadline) {
  int count = WaitOnce(storage, deadline);
  return storage.first(std::max(count, 0));
}

int EpollSet::WaitOnce(std::span<epoll_event> storage, Time deadline) {
  int room = static_cast<int>(storage.size());
  if (deadline == Time::max()) return uncancelled::EpollWait(fd_, storage.data(), room, -1);
  Duration left = deadline == Time::min() ? Duration::zero() : deadline - std::chrono::steady_clock::now();
  if (left <= Duration::zero()) return uncancelled::EpollWait(fd_, storage.data(), room, 0);

  if (g_has_nanoseconds.load(std::memory_order_relaxed)) {
    auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
    long count = syscall(kEpollPwait2, fd_, storage.data(), room, &timeout, nullptr, size_t{0});
    // EPERM: a container's filter that does not know the call.
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(count);
    g_has_nanoseconds.store(false, std::memory_order_relaxed);
  }
  auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return uncancelled::EpollWait(fd_, storage.data(), room, static_cast<int>(std::min<int64_t>(milliseconds, INT_MAX)));
}

Interest EpollSet::ReadyOf(uint32_t events) {
  bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
  return {.read = broken || (events & EPOLLIN) != 0, .write = broken || (events & EPOLLOUT) != 0};
}

Epoll::~Epoll() {
  if (wake_fd_ >= 0) uncancelled::Close(wake_fd_);
}

int Epoll::Open() {
  if (int error = set_.Open(); error != 0) return error;
  if (int error = wakes_.Open(); error != 0) return error;
  if (wake_fd_ >= 0) return 0;
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return errno;
  // Edge-triggered, so that nobody needs to read it empty.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = kWakeKey}};
  if (epoll_ctl(set_.fd(), EPOLL_CTL_ADD, wake_fd_, &event) == 0 &&
      epoll_ctl(wakes_.fd(), EPOLL_CTL_ADD, wake_fd_, &event) == 0) {
    return 0;
  }
  int error = errno;
  uncancelled::Close(wake_fd_);
  wake_fd_ = -1;
  return error;
}

void Epoll::Wake() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = uncancelled::Write(wake_fd_, &one, sizeof one);
}

void Epoll::WaitForWake(Time deadline) {
  epoll_event event;
  wakes_.Wait({&event, 1}, deadline);
}

}  // namespace weft::transport
