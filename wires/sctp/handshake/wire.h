#ifndef WIRES_SCTP_HANDSHAKE_WIRE_H_
#define WIRES_SCTP_HANDSHAKE_WIRE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer_pool.h"
#include "base/result.h"
#include "base/settings.h"
#include "llp/handshake.h"
#include "transport/network.h"
#include "transport/sctp/sctp.h"
#include "wires/sctp/association/association.h"
#include "wires/sctp/locator/locator.h"

namespace weft::sctp {

// DDP stream sessions over SCTP (RFC 5043, RFC 6581). Connections from one address to the same listener share an
// association. All arguments outlive the wire and everything that it makes.
class Wire final : public llp::Wire {
 public:
  // Returns the host's SCTP, made on first use, or an errno.
  using GetSctp = std::function<Result<transport::sctp::Sctp*, int>()>;

  Wire(transport::Network& network, BufferPool& pool, const Settings& settings, GetSctp sctp)
      : network_(network), pool_(pool), settings_(settings), sctp_(std::move(sctp)) {}

  Result<std::unique_ptr<llp::Initiator>, int> Connect(const transport::SocketAddress& local,
                                                       const transport::SocketAddress& remote,
                                                       llp::Proposal ours) override;
  // SCTP has neither `only_v6` nor `reuse_address`: two listeners never share a port.
  Result<std::unique_ptr<llp::Listener>, int> Listen(const transport::SocketAddress& local, int backlog, bool only_v6,
                                                     bool reuse_address) override;
  bool listeners_take_udp_port() const override { return true; }  // for LocatorService

  std::vector<llp::PathState> Paths() override;

  // For initiators: an association to `remote` other than `but`. Uses an existing one that is up or coming up and has
  // room. `udp_port`: the peer's; 0: directly over IP. Errors: an errno.
  Result<std::shared_ptr<Association>, int> Reach(const transport::SocketAddress& local,
                                                  const transport::SocketAddress& remote, uint16_t udp_port,
                                                  const Association* but = nullptr);
  // Looks up the UDP port of `remote`: callers that ask at the same time share one search.
  Result<std::shared_ptr<LocatorSearch>, int> Locate(const transport::SocketAddress& local, const transport::SocketAddress& remote);

  // For listeners: associations that still have sessions when their listener closes. The next listener at that address
  // gets them.
  void Leave(const transport::SocketAddress& listener, std::vector<std::shared_ptr<Association>> associations);
  std::vector<std::shared_ptr<Association>> TakeLeft(const transport::SocketAddress& listener);

  // Number of associations that initiators made and that are still held.
  size_t associations();
  // Number of associations that initiators have made so far.
  uint64_t associations_made();

  transport::Network& network() { return network_; }
  BufferPool& pool() { return pool_; }
  const Settings& settings() const { return settings_; }

 private:
  Result<transport::sctp::Sctp*, int> Sctp();
  // Returns `error`, and logs the setting that may have caused it.
  int Explained(int error) const;
  transport::sctp::Settings SettingsAt(const transport::SocketAddress& local) const;

  transport::Network& network_;
  BufferPool& pool_;
  const Settings& settings_;
  const GetSctp sctp_;
  std::atomic<transport::sctp::Sctp*> made_sctp_{nullptr};  // set on first use

  std::mutex mutex_;  // guards the members below; locked before that of an association
  using Ends = std::pair<std::string, std::string>;  // local and remote address
  uint64_t made_ = 0;
  struct Known {
    std::weak_ptr<Association> association;
    uint16_t udp_port = 0;
  };
  std::map<Ends, Known> associations_;
  struct Left {
    transport::SocketAddress listener;
    std::weak_ptr<Association> association;
  };
  std::vector<Left> left_;
  std::map<Ends, std::weak_ptr<LocatorSearch>> searches_;
};

}  // namespace weft::sctp

#endif  // WIRES_SCTP_HANDSHAKE_WIRE_H_
