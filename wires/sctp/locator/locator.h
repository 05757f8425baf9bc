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

// The exchange of locator/message.h. The network outlives all of it.
namespace weft::sctp {

// Answers for a listener. Also holds its port against other processes of the host, which SCTP over UDP does not. Destruction ends it.
class LocatorService {
 public:
  virtual ~LocatorService() = default;
  virtual transport::SocketAddress LocalAddress() const = 0;
  // Answers `udp_port` (not 0) from now on. Once.
  virtual void Start(uint16_t udp_port) = 0;
};
// `local` as a listener has it; port 0: one is chosen. Errors: EADDRINUSE, EADDRNOTAVAIL, EMFILE ... .
Result<std::unique_ptr<LocatorService>, int> OpenLocatorService(transport::Network& network, const transport::SocketAddress& local,
                                                                bool only_v6);

// Asks where the listener at `remote` is, again and again until there is an answer or a refusal; to give up is the owner's.
// Several may wait for the same. Thread safe.
class LocatorSearch : public std::enable_shared_from_this<LocatorSearch> {
 public:
  // Errors: EMFILE, ENETUNREACH ... .
  static Result<std::shared_ptr<LocatorSearch>, int> Begin(transport::Network& network, const transport::SocketAddress& local,
                                                          const transport::SocketAddress& remote);
  ~LocatorSearch();
  LocatorSearch(const LocatorSearch&) = delete;

  // The UDP port, ECONNREFUSED (nobody has the port), or EINPROGRESS.
  Result<uint16_t, int> outcome() const;
  // `done` is called once when there is an outcome, on the network's thread without locks.
  void Wait(std::function<void()> done);

 private:
  class Relay;
  LocatorSearch(transport::Network& network, std::unique_ptr<transport::DatagramSocket> socket, const transport::SocketAddress& remote);
  void Ask();  // with the lock
  void OnReady();
  void OnTimer();
  void Finish(Result<uint16_t, int> outcome);
  std::optional<Result<uint16_t, int>> Look();

  transport::Network& network_;
  const std::unique_ptr<transport::DatagramSocket> socket_;
  const transport::SocketAddress remote_;
  const uint64_t transaction_;

  mutable std::mutex mutex_;  // guards what follows
  Result<uint16_t, int> outcome_ = EINPROGRESS;
  std::vector<std::function<void()>> waiting_;
  transport::WatchId watch_ = 0;
  transport::TimerId timer_ = 0;
  std::chrono::milliseconds interval_;
};

}  // namespace weft::sctp

#endif  // WIRES_SCTP_LOCATOR_LOCATOR_H_
