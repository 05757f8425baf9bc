#ifndef WIRES_SCTP_HANDSHAKE_INCOMING_H_
#define WIRES_SCTP_HANDSHAKE_INCOMING_H_

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "llp/handshake.h"
#include "transport/network.h"
#include "transport/sctp/sctp.h"
#include "transport/socket_address.h"
#include "wires/sctp/association/association.h"
#include "wires/sctp/handshake/wire.h"

namespace weft::sctp {

// The associations accepted by a listener, and the receivers of requests on them. An association without a session is
// shut down after a while; if there are too many at once, the oldest is shut down. An initiator asks for its session as
// soon as the association is up, and shuts it down with its last session.
class Incoming final : public transport::ReadyHandler, public std::enable_shared_from_this<Incoming> {
 public:
  static constexpr std::chrono::seconds kIdleLimit{20};
  static constexpr size_t kMostIdle = 1024;

  // Listens at `local`. `wire` outlives it.
  Incoming(Wire& wire, std::unique_ptr<transport::sctp::Listener> listener, const transport::SocketAddress& local)
      : wire_(wire), local_(local), listener_(std::move(listener)) {}

  void Start();
  void Watch(std::shared_ptr<transport::ReadyHandler> handler);
  Result<std::unique_ptr<llp::Responder>, int> Accept();
  // Sessions already taken keep their association.
  void Close();

  // Called on the network's thread.
  void OnReady(transport::Interest) override;
  size_t associations();

 private:
  class WeakHandler;
  struct Entry {
    std::shared_ptr<Association> association;
    transport::Time idle_since{};  // zero: not idle
  };
  using Gone = std::vector<std::shared_ptr<Association>>;  // released where no lock is held

  void Add(std::shared_ptr<Association> association);
  void OnRequest(std::weak_ptr<Association> association);
  void Sweep();
  Gone TakeIdle(transport::Time now);
  void SetClock();

  Wire& wire_;
  const transport::SocketAddress local_;
  std::mutex mutex_;  // guards the members below; locked before that of an association
  std::unique_ptr<transport::sctp::Listener> listener_;
  std::shared_ptr<transport::ReadyHandler> handler_;
  std::deque<Entry> entries_;                        // oldest first
  std::deque<std::weak_ptr<Association>> asking_;    // have, or had, a request
  bool clock_runs_ = false;
};

}  // namespace weft::sctp

#endif  // WIRES_SCTP_HANDSHAKE_INCOMING_H_
