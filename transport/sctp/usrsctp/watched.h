#ifndef TRANSPORT_SCTP_USRSCTP_WATCHED_H_
#define TRANSPORT_SCTP_USRSCTP_WATCHED_H_

#include <atomic>
#include <memory>
#include <vector>

#include "transport/network.h"
#include "transport/sctp/sctp.h"

namespace weft::transport::sctp {

// Something with a socket of usrsctp that its owner wants to hear of. Under the stack's lock, but for what is atomic.
class Watched {
 public:
  virtual ~Watched() = default;
  // Timers may have run: paths may be in other states.
  virtual void LookAtPaths(Time /*now*/) {}
  // Of an association.
  virtual std::vector<Path> PathsLocked() const { return {}; }

 protected:
  friend class Dispatcher;
  friend class Stack;
  // The handler is to be called.
  bool has_news() const { return (may_read_ && reading_) || may_have_room_; }

  std::shared_ptr<ReadyHandler> handler_;
  bool reading_ = true;         // the handler wants to hear of what can be received
  bool may_read_ = false;       // since the last look that found nothing something came
  bool wants_room_ = false;     // a message did not fit
  bool may_have_room_ = false;  // and since then there is room, perhaps
  bool queued_ = false;         // in the dispatcher's list
  // Somebody comes for what there is, who needs no call of the handler, until then: in the network's time, 0: nobody.
  std::atomic<Duration::rep> lent_until_{0};
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_WATCHED_H_
