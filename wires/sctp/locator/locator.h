#ifndef WIRES_SCTP_LOCATOR_LOCATOR_H_
#define WIRES_SCTP_LOCATOR_LOCATOR_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "transport/network.h"
#include "transport/socket_address.h"

// The protocol of locator/message.h. `network` outlives all of its objects.
namespace weft::sctp {

// Answers for a listener. Also reserves its port against other processes of the host, which SCTP over UDP does not do.
// Ends on destruction.
class LocatorService {
 public:
  virtual ~LocatorService() = default;
  virtual transport::SocketAddress LocalAddress() const = 0;
  // Called once. Answers `udp_port` (not 0) from now on.
  virtual void Start(uint16_t udp_port) = 0;
};
// `local`: the listener's address; port 0: one is chosen. Errors: EADDRINUSE, EADDRNOTAVAIL, EMFILE ...
Result<std::unique_ptr<LocatorService>, int> OpenLocatorService(transport::Network& network, const transport::SocketAddress& local,
                                                                bool only_v6);

// Asks for the UDP port of the listener at `remote`, again and again until there is an answer or a refusal. The owner
// decides when to give up. Several callers may wait for one search. Thread safe.
class LocatorSearch : public std::enable_shared_from_this<LocatorSearch> {
 public:
  // Errors: EMFILE, ENETUNREACH ...
  static Result<std::shared_ptr<LocatorSearch>, int> Begin(transport::Network& network, const transport::SocketAddress& local,
                                                          const transport::SocketAddress& remote);
  ~LocatorSearch();
  LocatorSearch(const LocatorSearch&) = delete;

  // The UDP port, ECONNREFUSED (no process has the port), or EINPROGRESS.
  Result<uint16_t, int> outcome() const;
  // `done` is called once there is an outcome, on the network's thread without locks.
  void Wait(std::function<void()> done);

 private:
  class Relay;
  LocatorSearch(transport::Network& network, std::unique_ptr<transport::DatagramSocket> socket, const transport::SocketAddress& remote);
  void Ask();  // requires the lock
  void OnReady();
  void OnTimer();
  void Finish(Result<uint16_t, int> outcome);
  std::optional<Result<uint16_t, int>> Look();

  transport::Network& network_;
  const std::unique_ptr<transport::DatagramSocket> socket_;
  const transport::SocketAddress remote_;
  const uint64_t transaction_;

  mutable std::mutex mutex_;  // guards the members below
  Result<uint16_t, int> outcome_ = EINPROGRESS;
  std::vector<std::function<void()>> waiting_;
  transport::WatchId watch_ = 0;
  transport::TimerId timer_ = 0;
  std::chrono::milliseconds interval_;
};

}  // namespace weft::sctp

#endif  // WIRES_SCTP_LOCATOR_LOCATOR_H_
