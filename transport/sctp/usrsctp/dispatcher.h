#ifndef TRANSPORT_SCTP_USRSCTP_DISPATCHER_H_
#define TRANSPORT_SCTP_USRSCTP_DISPATCHER_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "transport/network.h"
#include "transport/sctp/usrsctp/watched.h"

namespace weft::transport::sctp {

// Who has something for its owner, and on which thread the owner hears of it: on the one that took it in, if that may
// call handlers, else on the network's, at once or, if it is lent, when nobody has come for it.
class Dispatcher {
 public:
  // `mutex`: the lock around usrsctp. `alive`: false in a child of the process that made this.
  Dispatcher(std::mutex& mutex, std::function<bool()> alive) : mutex_(mutex), alive_(std::move(alive)) {}
  // First, once. It outlives all calls.
  void SetNetwork(Network& network) { network_ = &network; }

  // --- under the lock ---

  void Rouse(Watched& watched);
  // Its handler is not called for what there is.
  void Calm(const Watched& watched);
  // What is to be done by a thread that leaves the lock and does not call Dispatch().
  enum class Due : uint8_t { kNothing, kPost, kLook };
  Due WhatIsDue();
  uint64_t posts() const { return posts_; }  // times that the network's thread was woken for it

  // --- without ---

  void Arrange(Due due);
  // Calls the handlers of what is ready; `lent_too`: of what somebody else comes for, as well.
  void Dispatch(bool lent_too);

  // Of Watched: a thread that spins will come for what there is.
  void Lend(Watched& watched);

 private:
  bool IsLent(const Watched& watched, Time now) const;
  void ArmLook(Duration after);
  void OnLook(Duration after);

  std::mutex& mutex_;
  const std::function<bool()> alive_;
  Network* network_ = nullptr;
  std::vector<Watched*> ready_;
  bool posted_ = false;
  bool looking_ = false;  // a timer runs for what is lent
  bool left_ = false;     // since its last look there was some of that
  int dispatching_ = 0;   // threads that call handlers, and look again when they have
  uint64_t posts_ = 0;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_DISPATCHER_H_
