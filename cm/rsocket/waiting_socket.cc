#include "cm/rsocket/waiting_socket.h"

#include <poll.h>

#include <cerrno>

#include "cm/rsocket/defaults.h"

namespace weft::rsocket {

Deadline WaitingSocket::DeadlineOf(int flags, const timeval& timeout) const {
  if (nonblocking_ || (flags & MSG_DONTWAIT) != 0) return Clock::time_point::min();
  if (timeout.tv_sec == 0 && timeout.tv_usec == 0) return std::nullopt;
  return Clock::now() + std::chrono::seconds(timeout.tv_sec) + std::chrono::microseconds(timeout.tv_usec);
}

int WaitingSocket::AwaitCondition(Lock& lock, const Deadline& deadline, Condition ready) {
  Drive();
  if ((this->*ready)()) return 0;
  if (Passed(deadline)) return EAGAIN;
  const auto spin_until = Clock::now() + std::chrono::microseconds(Defaults::Process().polling_us);
  do {
    lock.unlock();  // for the other direction
    lock.lock();
    Drive();
    if ((this->*ready)()) return 0;
  } while (Clock::now() < spin_until);

  Waiter& me = Waiter::Mine();
  if (me.fd() < 0) return EMFILE;
  for (;;) {
    WaitNode node{&me};
    waiters_.Add(node);
    Arm();
    Drive();
    if ((this->*ready)()) {
      waiters_.Remove(node);
      return 0;
    }
    pollfd fds[] = {{wait_fd(), POLLIN, 0}, {me.fd(), POLLIN, 0}};
    lock.unlock();
    const int count = poll(fds, 2, PollTimeout(deadline));
    const int error = count < 0 ? errno : 0;
    if (fds[1].revents != 0) me.Clear();
    lock.lock();
    waiters_.Remove(node);
    TakeEvents();
    Drive();
    if ((this->*ready)()) return 0;
    if (error != 0) return error;
    if (Passed(deadline)) return EAGAIN;
  }
}

short WaitingSocket::Poll(short events) {
  Lock lock(mutex_);
  if (closing_) return POLLNVAL;
  Drive();
  return Events(events);
}

short WaitingSocket::BeginWait(short events, WaitNode& node, int fds[kWaitFds]) {
  fds[0] = fds[1] = -1;
  Lock lock(mutex_);
  if (closing_) return POLLNVAL;
  waiters_.Add(node);
  Arm();
  Drive();
  if (const short now = Events(events); now != 0) {
    waiters_.Remove(node);
    return now;
  }
  fds[0] = wait_fd();
  return 0;
}

void WaitingSocket::EndWait(WaitNode& node) {
  Lock lock(mutex_);
  waiters_.Remove(node);
  TakeEvents();
}

}  // namespace weft::rsocket
