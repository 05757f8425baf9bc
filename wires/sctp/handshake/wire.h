#ifndef WIRES_SCTP_HANDSHAKE_WIRE_H_
#define WIRES_SCTP_HANDSHAKE_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/buffer_pool.h"
#include "base/result.h"
#include "base/settings.h"
#include "llp/handshake.h"
#include "transport/network.h"
#include "transport/sctp/sctp.h"
#include "wires/sctp/association/association.h"

namespace weft::sctp {

// The UDP port on which the process that listens at `remote` takes SCTP; 0: in IP; nullopt: nobody is known there.
using FindUdpPort = std::function<std::optional<uint16_t>(const transport::SocketAddress& remote)>;

// DDP stream sessions over SCTP (RFC 5043, RFC 6581). Connections from one address to the same listener share an
// association. All arguments outlive it and what it makes.
class Wire final : public llp::Wire {
 public:
  Wire(transport::Network& network, BufferPool& pool, const Settings& settings, transport::sctp::Sctp& sctp,
       FindUdpPort find_udp_port)
      : network_(network), pool_(pool), settings_(settings), sctp_(sctp), find_udp_port_(std::move(find_udp_port)) {}

  Result<std::unique_ptr<llp::Initiator>, int> Connect(const transport::SocketAddress& local,
                                                       const transport::SocketAddress& remote,
                                                       llp::Proposal ours) override;
  // SCTP has neither `only_v6` nor `reuse_address`: two listeners never share a port.
  Result<std::unique_ptr<llp::Listener>, int> Listen(const transport::SocketAddress& local, int backlog, bool only_v6,
                                                     bool reuse_address) override;

  // For initiators: an association to `remote` that is up or may come up, one that exists if it can be. Errors: an
  // errno.
  Result<std::shared_ptr<Association>, int> Reach(const transport::SocketAddress& local,
                                                  const transport::SocketAddress& remote);

  // That initiators made, and somebody holds.
  size_t associations();

  transport::Network& network() { return network_; }
  BufferPool& pool() { return pool_; }
  const Settings& settings() const { return settings_; }

 private:
  transport::Network& network_;
  BufferPool& pool_;
  const Settings& settings_;
  transport::sctp::Sctp& sctp_;
  const FindUdpPort find_udp_port_;

  std::mutex mutex_;  // guards what follows; before the lock of an association
  std::map<std::pair<std::string, std::string>, std::weak_ptr<Association>>
      associations_;  // by local and remote address
};

}  // namespace weft::sctp

#endif  // WIRES_SCTP_HANDSHAKE_WIRE_H_
