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

// News for the program or the connection manager, delivered after the engine is released.
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

// Timers for objects that the engine of a queue pair guards.
class EngineTimers {
 public:
  virtual ~EngineTimers() = default;
  virtual transport::Network& network() const = 0;
  // Runs `work` with the engine held, unless the queue pair is gone by then.
  virtual transport::TimerId RunAfter(transport::Duration delay, std::function<void()> work) = 0;
  // The same if the exact time does not matter: while another thread holds the engine, it retries after `otherwise`.
  virtual void RunWhenFree(transport::Duration delay, transport::Duration otherwise, std::function<void()> work) = 0;
};

// A queue pair as its connection sees it. Called with the engine held.
class ConnectionUser : public EngineTimers {
 public:
  virtual void Tell(News news) = 0;
  // Whether the state of the queue pair allows requests to begin.
  virtual bool may_begin() const = 0;
  // Whether the program connected the queue pair itself, and has not yet allowed it to send.
  virtual bool awaits_communication() const = 0;
  // Whether the queue pair continues without a peer, as on InfiniBand, and finds out only when it needs the peer.
  virtual bool outlives_peer() const = 0;
  // A request completed.
  virtual void OnRetired() = 0;
  // Acknowledgements wait for the next poll that finds nothing (Connection::RunErrand). Returns false if no completion
  // queue does that.
  virtual bool AddErrand() = 0;
  // XRC: receives complete at `completions` from now on.
  virtual void OnTarget(const std::shared_ptr<CompletionQueue>& completions) = 0;
  // The stream has ended, and the connection can no longer be used. Call its Close(), and fail the posted requests.
  // `blame` is the status of the request with count `at`.
  virtual void OnOver(bool orderly, std::optional<ibv_wc_status> blame = std::nullopt, std::optional<uint64_t> at = std::nullopt) = 0;
  // The same because the peer is gone. Connection::unused() tells whether the connection was used.
  virtual void OnLost(bool orderly) = 0;
  // Posted requests fail, but the connection still has something to send to the peer. `blame`, `at`: as above.
  virtual void OnTerminating(std::optional<ibv_wc_status> blame, std::optional<uint64_t> at) = 0;
  // For messages: the peer's address, and its queue pair if the program named one.
  virtual std::string PeerName() const = 0;
};

}  // namespace weft::sim

#endif  // SIM_CONNECTION_USER_H_
