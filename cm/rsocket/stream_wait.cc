// What a stream rsocket waits for.
#include <poll.h>

#include "cm/rsocket/stream.h"

namespace weft::rsocket {

void Stream::Arm() {
  if (link_ == nullptr || armed_) return;
  armed_ = true;
  ibv_req_notify_cq(link_->cq(), 0);
}

void Stream::TakeEvents() {
  if (link_ == nullptr || !armed_) return;
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
  if (!any) return;
  armed_ = false;
  waiters_.WakeAll(&Waiter::Mine());  // they arm it again
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

}  // namespace weft::rsocket
