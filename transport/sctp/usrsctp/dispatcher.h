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

// Tracks which associations have news, and on which thread their handlers are called: on the thread that received the
// data, if it may call handlers; otherwise on the network's thread, at once, or, for an association that is lent, if
// nobody has fetched the data.
class Dispatcher {
 public:
  // `mutex`: the lock around usrsctp. `alive`: false in a child of the process that made this object.
  Dispatcher(std::mutex& mutex, std::function<bool()> alive) : mutex_(mutex), alive_(std::move(alive)) {}
  // Called once, before anything else. `network` outlives all calls.
  void SetNetwork(Network& network) { network_ = &network; }

  // --- these require the lock ---

  void Rouse(Watched& watched);
  // Its handler is not called for its current news.
  void Calm(const Watched& watched);
  // Work for a thread that releases the lock and does not call Dispatch().
  enum class Due : uint8_t { kNothing, kPost, kLook };
  Due WhatIsDue();
  uint64_t posts() const { return posts_; }  // how often the network's thread was woken for it

  // --- these do not ---

  void Arrange(Due due);
  // Calls the handlers of what is ready; with `lent_too`, also of those that another thread is expected to fetch.
  void Dispatch(bool lent_too);

  // Implements Watched: a spinning thread will fetch its news.
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
  bool looking_ = false;  // a timer runs for lent associations
  bool left_ = false;     // since its last run some of them had news
  int dispatching_ = 0;   // threads that call handlers, and look again afterwards
  uint64_t posts_ = 0;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_DISPATCHER_H_
