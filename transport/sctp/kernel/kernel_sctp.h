#ifndef TRANSPORT_SCTP_KERNEL_KERNEL_SCTP_H_
#define TRANSPORT_SCTP_KERNEL_KERNEL_SCTP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "transport/network.h"
#include "transport/sctp/kernel/association.h"
#include "transport/sctp/sctp.h"

namespace weft::transport::sctp {

// The SCTP of the kernel (RFC 6458), where it has one. It travels in IP and needs no privilege; over UDP, in both directions, if the host's
// administrator gave it a port (net.sctp.udp_port). It has neither concurrent multipath transfer, which is taken for kFailover, nor messages
// in parts: those are gathered, and as long as `send_buffer` at most. Its paths count no packets.
class KernelSctp final : public Sctp {
 public:
  // 0, or why this kernel has none: EPROTONOSUPPORT ...
  static int Probe();

  // `network`, whose descriptors are the kernel's, outlives it and what it makes, and it outlives that.
  explicit KernelSctp(Network& network) : network_(network) {}

  Result<std::unique_ptr<Association>, int> Connect(const Peer& peer, uint16_t local_port, const Settings& settings) override;
  Result<std::unique_ptr<Listener>, int> Listen(const SocketAddress& local, int backlog, const Settings& settings) override;
  uint16_t udp_port() const override;
  bool native() const override { return true; }
  std::vector<std::vector<Path>> AllPaths() const override;
  // There is nothing to take in: who polls asks his association.
  bool Poll(const Association*) override { return false; }

 private:
  Network& network_;
  mutable KernelAssociations associations_;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_KERNEL_KERNEL_SCTP_H_
