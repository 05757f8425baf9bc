#ifndef TRANSPORT_SCTP_USRSCTP_WATCHED_H_
#define TRANSPORT_SCTP_USRSCTP_WATCHED_H_

#include <atomic>
#include <memory>
#include <vector>

#include "transport/network.h"
#include "transport/sctp/sctp.h"

namespace weft::transport::sctp {

// An object with a usrsctp socket and a handler. Requires the stack's lock, except for atomic members.
class Watched {
 public:
  virtual ~Watched() = default;
  // Timers may have run: paths may have changed their state.
  virtual void LookAtPaths(Time /*now*/) {}
  // For an association.
  virtual std::vector<Path> PathsLocked() const { return {}; }

 protected:
  friend class Dispatcher;
  friend class Stack;
  // Whether the handler must be called.
  bool has_news() const { return (may_read_ && reading_) || may_have_room_; }

  std::shared_ptr<ReadyHandler> handler_;
  bool reading_ = true;         // the handler wants to know about received data
  bool may_read_ = false;       // something arrived since the last look that found nothing
  bool wants_room_ = false;     // a message did not fit
  bool may_have_room_ = false;  // ... and since then there may be room
  bool queued_ = false;         // in the dispatcher's list
  // Until this time (of the network's clock; 0: not at all) a thread fetches the news itself, and the handler need not
  // be called.
  std::atomic<Duration::rep> lent_until_{0};
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_WATCHED_H_
