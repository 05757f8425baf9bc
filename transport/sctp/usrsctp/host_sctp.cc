#include "transport/sctp/usrsctp/host_sctp.h"

#include <netinet/in.h>
#include <usrsctp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/sctp/arguments.h"
#include "transport/sctp/usrsctp/association.h"
#include "transport/sctp/usrsctp/listener.h"
#include "transport/sctp/usrsctp/options.h"

namespace weft::transport::sctp {
namespace {

// usrsctp sends nothing at 65535, what loopback would carry.
constexpr uint32_t kMostMtu = 65400, kLeastMtu = 576;
constexpr uint32_t kLeastMtuV6 = 1280;  // RFC 8200 section 5
constexpr uint32_t kMostHeaders = 48;   // of IPv6 and UDP

uint16_t PortOf(struct socket* socket) {
  const auto addresses = LocalAddressesOf(socket);
  return addresses.empty() ? 0 : htons(addresses[0].port());
}

bool AreIn(const std::vector<HostAddress>& all, const std::vector<SocketAddress>& some) {
  return std::all_of(some.begin(), some.end(), [&](const SocketAddress& address) {
    return std::any_of(all.begin(), all.end(), [&](const HostAddress& one) { return one.address.SameHost(address); });
  });
}

bool AreLoopbacks(const std::vector<SocketAddress>& some) {
  return std::all_of(some.begin(), some.end(), [](const SocketAddress& address) { return address.is_loopback(); });
}

}  // namespace

HostSctp::HostSctp(Stack& stack, Host host) : stack_(stack), host_(std::move(host)) { stack_.Attach(host_); }

HostSctp::~HostSctp() {
  for (const WatchId watch : host_.watches) host_.network->Unwatch(watch);
}

uint16_t HostSctp::udp_port() const { return host_.udp != nullptr ? host_.udp->LocalAddress().port() : 0; }

uint32_t HostSctp::MtuTo(const std::vector<SocketAddress>& peers, const std::vector<SocketAddress>& locals) const {
  const auto all = host_.list_addresses();
  const auto has = [](const std::vector<SocketAddress>& some, const HostAddress& one) {
    return std::any_of(some.begin(), some.end(), [&](const SocketAddress& a) { return a.SameHost(one.address); });
  };
  // What goes to an address of this host does not leave it.
  if (AreIn(all, peers)) return kMostMtu;
  std::vector<SocketAddress> from = locals;
  if (from.empty()) {
    for (const SocketAddress& peer : peers) {
      if (const auto source = host_.source_for(peer); source && source->family() != 0) from.push_back(*source);
    }
  }
  uint32_t least = kMostMtu;
  for (const HostAddress& one : all) {
    if ((from.empty() || has(from, one)) && one.mtu != 0) least = std::min(least, one.mtu);
  }
  return std::max(least, kLeastMtu);
}

int HostSctp::BindTo(struct socket* socket, int family, const std::vector<SocketAddress>& addresses, uint16_t port, bool in_ip,
                     std::shared_ptr<void>* held) {
  if (port != 0 || !in_ip || !host_.reserve_port) return Bind(socket, family, addresses, port);
  // One that this process has been told to take by its number was nobody else's to reserve.
  std::vector<Host::ReservedPort> in_vain;
  constexpr int kMostTries = 64;
  int error = EADDRINUSE;
  for (int i = 0; i < kMostTries && error == EADDRINUSE; ++i) {
    auto reserved = host_.reserve_port();
    if (!reserved) return reserved.error();
    error = Bind(socket, family, addresses, reserved->port);
    if (error == 0) *held = std::move(reserved->held);
    in_vain.push_back(*std::move(reserved));
  }
  return error;
}

Result<std::unique_ptr<Association>, int> HostSctp::Connect(const Peer& peer, uint16_t local_port,
                                                            const Settings& settings) {
  if (!stack_.InThisProcess()) return ECHILD;
  if (int error = Check(settings)) return error;
  if (int error = Check(peer)) return error;
  if (peer.udp_port == 0 && !native()) return EPROTONOSUPPORT;
  if (peer.udp_port != 0 && host_.udp == nullptr) return EPROTONOSUPPORT;
  std::vector<SocketAddress> locals = settings.local_addresses;
  if (locals.empty()) {
    const auto source = host_.source_for(peer.addresses[0]);
    if (!source) return ENETUNREACH;
    if (source->family() == 0) return ENOBUFS;
    locals = {*source};
  }
  if (int error = CheckAddresses(locals)) return error;
  // Within a host the kernel sends from any address to any; usrsctp does not from the loopback's to others, or to it from others.
  if (AreLoopbacks(locals) != AreLoopbacks(peer.addresses) && AreIn(host_.list_addresses(), peer.addresses)) {
    if (const auto source = host_.source_for(peer.addresses[0]); source && source->family() != 0) locals = {*source};
  }
  const int family = FamilyFor(locals, peer.addresses);
  const uint32_t mtu = settings.path_mtu != 0 ? std::min(settings.path_mtu, kMostMtu) : MtuTo(peer.addresses, locals);

  const Stack::Locked locked(stack_);
  stack_.LookForAddresses(host_, locals);
  if (mtu < kLeastMtuV6) stack_.outbox().LimitJoined(mtu - kMostHeaders);
  struct socket* socket = nullptr;
  if (int error = OpenSocket(family, settings, mtu, peer.udp_port != 0, &socket)) return error;
  int error = SetUdpPort(socket, peer.udp_port);
  // A path that is potentially failed is sent a HEARTBEAT. Behind a COOKIE ECHO that is lost it would be answered by an
  // ABORT (RFC 9260 section 8.4).
  if (error == 0) error = SetThresholds(socket, family, settings, /*leave_early=*/false);
  std::shared_ptr<void> held;
  if (error == 0) error = BindTo(socket, family, locals, local_port, /*in_ip=*/peer.udp_port == 0, &held);
  if (error != 0) {
    usrsctp_close(socket);
    return error;
  }
  const uint16_t port = PortOf(socket);
  stack_.ports().Add(port, locals, std::move(held));
  auto association = std::make_unique<UsrsctpAssociation>(stack_, socket, port);
  association->Know(peer.addresses, peer.udp_port);
  association->WhenUp([socket, family, settings] { SetThresholds(socket, family, settings, /*leave_early=*/true); });
  const auto packed = Packed(peer.addresses);
  if (usrsctp_connectx(socket, reinterpret_cast<const sockaddr*>(packed.data()),
                       static_cast<int>(peer.addresses.size()), nullptr) != 0 &&
      errno != EINPROGRESS) {
    error = errno;
    association->CloseLocked();
    return error;
  }
  return std::unique_ptr<Association>(std::move(association));
}

Result<std::unique_ptr<Listener>, int> HostSctp::Listen(const SocketAddress& local, int backlog,
                                                        const Settings& settings) {
  if (!stack_.InThisProcess()) return ECHILD;
  if (int error = Check(settings)) return error;
  const bool wildcard = settings.local_addresses.empty() && local.is_wildcard();
  std::vector<SocketAddress> locals = settings.local_addresses;
  if (locals.empty()) locals = {local};
  if (int error = CheckAddresses(locals)) return error;
  const int family = FamilyFor(locals, {});
  const auto bound = wildcard ? std::vector<SocketAddress>() : locals;
  const auto mtu_to = [this, bound, most = settings.path_mtu](const std::vector<SocketAddress>& peers) {
    return most != 0 ? std::min(most, kMostMtu) : MtuTo(peers, bound);
  };

  const Stack::Locked locked(stack_);
  stack_.LookForAddresses(host_, locals);
  // Until a peer is known, nothing long is sent. usrsctp makes packets smaller later, not larger.
  const uint32_t mtu = mtu_to({});
  if (mtu < kLeastMtuV6) stack_.outbox().LimitJoined(mtu - kMostHeaders);
  struct socket* socket = nullptr;
  if (int error = OpenSocket(family, settings, mtu, host_.udp != nullptr, &socket)) return error;
  std::shared_ptr<void> held;
  int error = BindTo(socket, family, locals, local.port(), native(), &held);
  if (error == 0 && usrsctp_listen(socket, std::max(backlog, 1)) != 0) error = errno;
  if (error != 0) {
    usrsctp_close(socket);
    return error;
  }
  const uint16_t port = PortOf(socket);
  stack_.ports().Add(port, bound, std::move(held));
  return std::unique_ptr<Listener>(std::make_unique<UsrsctpListener>(stack_, socket, port, family, mtu_to));
}

bool HostSctp::Poll(const Association* mine) {
  for (const WatchId watch : host_.watches) host_.network->Lend(watch);
  return stack_.Pump(host_, /*caller_dispatches=*/false, static_cast<const UsrsctpAssociation*>(mine));
}

}  // namespace weft::transport::sctp
