#ifndef TRANSPORT_SCTP_USRSCTP_LISTENER_H_
#define TRANSPORT_SCTP_USRSCTP_LISTENER_H_

#include <functional>
#include <memory>
#include <vector>

#include "transport/sctp/sctp.h"
#include "transport/sctp/usrsctp/stack.h"

namespace weft::transport::sctp {

// A listening usrsctp socket. `stack` outlives it.
class UsrsctpListener final : public Listener, public Watched {
 public:
  // The largest IP packet in bytes for all of these peers.
  using MtuTo = std::function<uint32_t(const std::vector<SocketAddress>& peers)>;
  // As in UsrsctpAssociation, with sockets of `family`.
  UsrsctpListener(Stack& stack, struct socket* socket, uint16_t port, int family, MtuTo mtu_to);
  ~UsrsctpListener() override;

  void Watch(std::shared_ptr<ReadyHandler> handler) override;
  Result<std::unique_ptr<Association>, int> Accept() override;
  std::vector<SocketAddress> LocalAddresses() const override;

 private:
  Stack& stack_;
  struct socket* const socket_;
  const uint16_t port_;
  const int family_;
  const MtuTo mtu_to_;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_LISTENER_H_
