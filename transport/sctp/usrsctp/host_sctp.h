#ifndef TRANSPORT_SCTP_USRSCTP_HOST_SCTP_H_
#define TRANSPORT_SCTP_USRSCTP_HOST_SCTP_H_

#include <memory>
#include <vector>

#include "transport/sctp/sctp.h"
#include "transport/sctp/usrsctp/host.h"
#include "transport/sctp/usrsctp/stack.h"

namespace weft::transport::sctp {

// SCTP at a host's addresses. `stack` outlives it and everything that it made.
class HostSctp final : public Sctp {
 public:
  HostSctp(Stack& stack, Host host);
  ~HostSctp() override;

  Result<std::unique_ptr<Association>, int> Connect(const Peer& peer, uint16_t local_port,
                                                    const Settings& settings) override;
  Result<std::unique_ptr<Listener>, int> Listen(const SocketAddress& local, int backlog,
                                                const Settings& settings) override;
  uint16_t udp_port() const override;
  bool native() const override { return host_.native4 != nullptr || host_.native6 != nullptr; }
  std::vector<std::vector<Path>> AllPaths() const override { return stack_.AllPaths(); }
  bool Poll(const Association* mine) override;

 private:
  // Binds to `port`, or to a free one (0). `*held` keeps the port from other processes.
  int BindTo(struct socket* socket, int family, const std::vector<SocketAddress>& addresses, uint16_t port, bool in_ip, std::shared_ptr<void>* held);
  // The largest IP packet in bytes that every path from `locals` (none: all addresses) to `peers` carries, as far as
  // the interfaces tell.
  uint32_t MtuTo(const std::vector<SocketAddress>& peers, const std::vector<SocketAddress>& locals) const;

  Stack& stack_;
  Host host_;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_HOST_SCTP_H_
