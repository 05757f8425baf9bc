#include "transport/sctp/usrsctp/listener.h"

#include <usrsctp.h>

#include <cerrno>
#include <utility>

#include "transport/sctp/usrsctp/association.h"
#include "transport/sctp/usrsctp/options.h"

namespace weft::transport::sctp {

UsrsctpListener::UsrsctpListener(Stack& stack, struct socket* socket, uint16_t port, int family, MtuTo mtu_to)
    : stack_(stack), socket_(socket), port_(port), family_(family), mtu_to_(std::move(mtu_to)) {
  stack_.Add(socket_, *this);
}

UsrsctpListener::~UsrsctpListener() {
  if (!stack_.InThisProcess()) return;
  const Stack::Locked locked(stack_);
  stack_.Close(socket_, *this, /*abort=*/true);
  stack_.ports().Forget(port_);
}

void UsrsctpListener::Watch(std::shared_ptr<ReadyHandler> handler) {
  if (!stack_.InThisProcess()) return;
  const Stack::Locked locked(stack_);
  handler_ = std::move(handler);
  stack_.Rouse(*this);
}

Result<std::unique_ptr<Association>, int> UsrsctpListener::Accept() {
  if (!stack_.InThisProcess()) return ECHILD;
  const Stack::Locked locked(stack_);
  struct socket* const socket = usrsctp_accept(socket_, nullptr, nullptr);
  if (socket == nullptr) {
    if (errno != EWOULDBLOCK && errno != EAGAIN) return errno;
    may_read_ = false;
    return EAGAIN;
  }
  usrsctp_set_non_blocking(socket, 1);
  stack_.ports().Share(port_);
  auto association = std::make_unique<UsrsctpAssociation>(stack_, socket, port_);
  const auto peers = PeerAddressesOf(socket);
  const uint16_t udp_port = peers.empty() ? uint16_t{0} : UdpPortOf(socket, peers[0]);
  association->Know(peers, udp_port);
  SetPacketSize(socket, family_, mtu_to_(peers), udp_port != 0);
  stack_.Rouse(*association);
  return std::unique_ptr<Association>(std::move(association));
}

std::vector<SocketAddress> UsrsctpListener::LocalAddresses() const {
  if (!stack_.InThisProcess()) return {};
  const Stack::Locked locked(stack_);
  return LocalAddressesOf(socket_);
}

}  // namespace weft::transport::sctp
