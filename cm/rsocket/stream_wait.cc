// Waiting for a stream rsocket: blocking calls, and the part of rpoll that looks at one socket.
//
// No wake-up is lost: a waiting thread puts itself on the list, asks the completion queue for an event, looks once more, and only then
// sleeps. Who takes an event or completions that it might have slept for wakes it through its own descriptor.
#include <poll.h>

#include <cerrno>

#include "cm/rsocket/stream.h"

namespace weft::rsocket {

Deadline Stream::DeadlineOf(int flags, const timeval& timeout) const {
  if (nonblocking_ || (flags & MSG_DONTWAIT) != 0) return Clock::time_point::min();
  if (timeout.tv_sec == 0 && timeout.tv_usec == 0) return std::nullopt;
  return Clock::now() + std::chrono::seconds(timeout.tv_sec) + std::chrono::microseconds(timeout.tv_usec);
}

int Stream::Await(Lock& lock, const Deadline& deadline, Condition ready) {
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
    TakeCqEvents();
    Drive();
    if ((this->*ready)()) return 0;
    if (error != 0) return error;
    if (Passed(deadline)) return EAGAIN;
  }
}

void Stream::Arm() {
  if (link_ == nullptr || armed_) return;
  armed_ = true;
  ibv_req_notify_cq(link_->cq(), 0);
}

bool Stream::TakeCqEvents() {
  if (link_ == nullptr || !armed_) return false;
  bool any = false;
  ibv_cq* cq;
  void* context;
  while (ibv_get_cq_event(link_->channel(), &cq, &context) == 0) {
    any = true;
    if (++unacknowledged_ == 256) {
      ibv_ack_cq_events(link_->cq(), unacknowledged_);
      unacknowledged_ = 0;
    }
  }
  if (!any) return false;
  armed_ = false;
  waiters_.WakeAll(&Waiter::Mine());  // they arm it again
  return true;
}

int Stream::wait_fd() const {
  if (opening() || state_ == State::kListening) return channel_ != nullptr ? channel_->fd : -1;
  return link_ != nullptr ? link_->channel()->fd : -1;
}

bool Stream::Readable() const {
  if (closing_ || (receive_ring_ && receive_ring_->readable() > 0)) return true;
  if (opening()) return false;
  return state_ != State::kConnected || read_shut_ || peer_done_ || lost_ || error_ != 0;
}

bool Stream::Writable() const { return WhyNotWritable() != 0 || (state_ == State::kConnected && CanSend()); }

short Stream::Events(short wanted) const {
  int events = 0;
  switch (state_) {
    case State::kListening:
      if (!requests_.empty()) events |= POLLIN | POLLRDNORM;
      break;
    case State::kIdle:
    case State::kBound:
      events |= POLLOUT | POLLWRNORM | POLLHUP;  // as Linux's TCP
      break;
    case State::kFailed:
      events |= POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM | POLLHUP | (error_ != 0 ? POLLERR : 0);
      break;
    case State::kConnected:
      if (Readable()) events |= POLLIN | POLLRDNORM;
      if (Writable()) events |= POLLOUT | POLLWRNORM;
      if (peer_done_ || lost_ || read_shut_) events |= POLLRDHUP;
      if (error_ != 0) events |= POLLERR;
      // Programs that take it for a failure still want what came before.
      if ((lost_ || peer_gone_ || (write_shut_ && (peer_done_ || read_shut_))) && receive_ring_->readable() == 0) {
        events |= POLLHUP;
      }
      break;
    default:
      break;
  }
  return static_cast<short>(events & (wanted | POLLERR | POLLHUP));
}

short Stream::Poll(short events) {
  Lock lock(mutex_);
  if (closing_) return POLLNVAL;
  Drive();
  return Events(events);
}

short Stream::BeginWait(short events, WaitNode& node, int fds[kWaitFds]) {
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

void Stream::EndWait(WaitNode& node) {
  Lock lock(mutex_);
  waiters_.Remove(node);
  TakeCqEvents();
}

}  // namespace weft::rsocket
