#ifndef SIM_CONNECTION_USER_H_
#define SIM_CONNECTION_USER_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sim/queues/completion_queue.h"
#include "transport/network.h"

namespace weft::sim {

// What the program, or who manages connections, is to be told once the engine is let go.
enum class News : uint8_t {
  kEstablished,
  kDisconnected,
  kNeverEstablished,
  kFatal,
  kAccessError,
  kRequestError,
  kLastReceive,
  kCommunication,
  kDrained,
};

// Timers of who is guarded by the engine of a queue pair.
class EngineTimers {
 public:
  virtual ~EngineTimers() = default;
  virtual transport::Network& network() const = 0;
  // `work` runs with the engine held, unless the queue pair is gone by then.
  virtual transport::TimerId RunAfter(transport::Duration delay, std::function<void()> work) = 0;
  // The same where it does not matter when exactly: while somebody else has the engine it is tried again `otherwise` later.
  virtual void RunWhenFree(transport::Duration delay, transport::Duration otherwise, std::function<void()> work) = 0;
};

// A queue pair as its connection sees it. Called with the engine held.
class ConnectionUser : public EngineTimers {
 public:
  virtual void Tell(News news) = 0;
  // Requests may begin, as far as its state is concerned.
  virtual bool may_begin() const = 0;
  // The program connected it itself, and has not said that it may send.
  virtual bool awaits_communication() const = 0;
  // It goes on without a peer, as on InfiniBand, and learns that it is gone when it wants something of it.
  virtual bool outlives_peer() const = 0;
  // A request completed.
  virtual void OnRetired() = 0;
  // Acknowledgements wait for the next poll that finds nothing (Connection::RunErrand). False: no completion queue takes that.
  virtual bool AddErrand() = 0;
  // XRC: receives complete there from now on.
  virtual void OnTarget(const std::shared_ptr<CompletionQueue>& completions) = 0;
  // What peers may not reach any more, and others have to forget, is to be dealt with. For the stream that ends:
  // the connection is of no use any more: Close() it, and fail what is posted; `blame` is the status of the request with count `at`.
  virtual void OnOver(bool orderly, std::optional<ibv_wc_status> blame = std::nullopt, std::optional<uint64_t> at = std::nullopt) = 0;
  // The same because the peer is gone; whether it was of any use tells Connection::unused().
  virtual void OnLost(bool orderly) = 0;
  // What is posted fails, and the connection has something to say to the peer still. `blame`, `at`: as above.
  virtual void OnTerminating(std::optional<ibv_wc_status> blame, std::optional<uint64_t> at) = 0;
  // For messages: the peer's address, and its queue pair where the program names one.
  virtual std::string PeerName() const = 0;
};

}  // namespace weft::sim

#endif  // SIM_CONNECTION_USER_H_
