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

// The kernel's SCTP (RFC 6458), if there is one. It runs directly over IP and needs no privilege. It runs over UDP, in
// both directions, if the administrator of the host has set a port (net.sctp.udp_port). It has no concurrent multipath
// transfer; kFailover is used instead. It has no messages in parts; they are collected, up to `send_buffer` bytes. Its
// paths count no packets.
class KernelSctp final : public Sctp {
 public:
  // 0, or the reason why this kernel has none: EPROTONOSUPPORT ...
  static int Probe();

  // `network` watches the kernel's descriptors. It outlives this object, and this object outlives everything made from
  // it.
  explicit KernelSctp(Network& network) : network_(network) {}

  Result<std::unique_ptr<Association>, int> Connect(const Peer& peer, uint16_t local_port, const Settings& settings) override;
  Result<std::unique_ptr<Listener>, int> Listen(const SocketAddress& local, int backlog, const Settings& settings) override;
  uint16_t udp_port() const override;
  bool native() const override { return true; }
  std::vector<std::vector<Path>> AllPaths() const override;
  // There is nothing to receive here: a polling thread asks its association.
  bool Poll(const Association*) override { return false; }

 private:
  Network& network_;
  mutable KernelAssociations associations_;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_KERNEL_KERNEL_SCTP_H_
