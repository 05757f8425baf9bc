// From addresses to a device: rdma_bind_addr, rdma_resolve_addr, rdma_resolve_route. Nothing here waits for the
// network: the kernel's routing answers at once, and iWARP needs no path record. The outcome is an event all the same.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "cm/export.h"
#include "cm/identifier.h"

namespace weft::cm {

using transport::SocketAddress;

namespace {

constexpr uint8_t kPortOfIdentifier = 1;
constexpr uint8_t kHopLimit = 64;

void Store(const SocketAddress& from, sockaddr_storage* into) {
  memset(into, 0, sizeof *into);
  memcpy(into, from.get(), from.length());
}

SocketAddress Load(const sockaddr_storage& from) {
  return SocketAddress::From(reinterpret_cast<const sockaddr*>(&from), sizeof from).value_or(SocketAddress());
}

// ::ffff:192.0.2.1 as 192.0.2.1: a listener on :: reports an IPv4 peer as what it is.
SocketAddress Unmapped(const SocketAddress& address) {
  if (address.family() != AF_INET6) return address;
  const auto* in6 = reinterpret_cast<const sockaddr_in6*>(address.get());
  if (!IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) return address;
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = in6->sin6_port;
  memcpy(&in.sin_addr, in6->sin6_addr.s6_addr + 12, 4);
  return SocketAddress::From(reinterpret_cast<const sockaddr*>(&in), sizeof in).value_or(address);
}

bool IsGroup(const SocketAddress& address) {
  if (address.family() == AF_INET) {
    return IN_MULTICAST(ntohl(reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr.s_addr));
  }
  return address.family() == AF_INET6 && IN6_IS_ADDR_MULTICAST(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
}

// A wildcard destination means this host.
SocketAddress Reachable(const SocketAddress& destination) {
  if (!destination.is_wildcard()) return destination;
  return SocketAddress::Parse(destination.family() == AF_INET ? "127.0.0.1" : "::1", destination.port())
      .value_or(destination);
}

}  // namespace

// An acceptor has had it since its request. Its program may read it while another thread of it fetches the next event.
void Identifier::SetSource(const SocketAddress& address) {
  const SocketAddress shown = Unmapped(address);
  const ibv_gid gid = ToGid(address);
  if (Load(route.addr.src_storage) == shown && memcmp(&route.addr.addr.ibaddr.sgid, &gid, sizeof gid) == 0) return;
  Store(shown, &route.addr.src_storage);
  route.addr.addr.ibaddr.sgid = gid;
}

void Identifier::SetDestination(const SocketAddress& address) {
  Store(Unmapped(address), &route.addr.dst_storage);
  route.addr.addr.ibaddr.dgid = ToGid(address);
}

SocketAddress Identifier::source() const { return Load(route.addr.src_storage); }
SocketAddress Identifier::destination() const { return Load(route.addr.dst_storage); }

int Identifier::BindDevice(const SocketAddress& local) {
  Device* device = Devices::Process().WithAddress(local);
  if (device == nullptr) return ENODEV;
  device_ = device;
  verbs = device->verbs;
  if (pd == nullptr) pd = device->pd;
  port_num = kPortOfIdentifier;
  route.addr.addr.ibaddr.pkey = 0xffff;
  return 0;
}

int Identifier::Bind(const SocketAddress& address) {
  if (state() != State::kIdle) return EINVAL;
  if (const int error = port_.Reserve(address, {.reuse_address = reuse_address_,
                                                 .only_v6 = only_v6_,
                                                 .udp_too = !datagrams() && Engine()->listeners_take_udp_port(),
                                                 .datagram = datagrams()}); error != 0) return error;
  // A loopback address names no device, as the wildcard: so Linux's rdma_cm has it, and libfabric relies on it. For datagrams it does, so
  // that groups can be joined on one host.
  if (!address.is_wildcard() && (datagrams() || !address.is_loopback())) {
    if (const int error = BindDevice(address); error != 0) {
      port_.Release();
      return error;
    }
  }
  port_was_chosen_ = address.port() == 0;
  SetSource(port_.address());
  set_state(State::kBound);
  return 0;
}

int Identifier::ResolveAddress(const SocketAddress& source, const SocketAddress& destination) {
  const State before = state();
  if (before != State::kIdle && before != State::kBound) return EINVAL;
  if (before == State::kIdle && source.family() != 0) {
    if (source.family() != destination.family()) return EINVAL;
    // Port 0 of no particular host binds nothing.
    if (!source.is_wildcard() || source.port() != 0) {
      if (const int error = Bind(source); error != 0) return error;
    }
  }
  if (port_.held() && port_.address().family() != destination.family()) return EINVAL;

  SetDestination(Reachable(destination));
  // A group is on whatever network the program names by its source; there need not be a route.
  const bool on_source = IsGroup(destination) && port_.held() && !port_.address().is_wildcard();
  const auto from = on_source ? port_.address() : transport::SourceAddressFor(port_.address(), Reachable(destination));
  int error = from.ok() ? 0 : from.error();
  if (error == 0) error = BindDevice(*from);
  if (error == 0) {
    SetSource(*from);
    if (PostFault(sim::CmApi::FaultPoint::kResolveAddress)) return 0;
    set_state(State::kAddressResolved);
    Post(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
  } else {
    Post(RDMA_CM_EVENT_ADDR_ERROR, -error);  // the program may try again
  }
  return 0;
}

ibv_ah_attr Identifier::AddressVector(const ibv_gid& destination) const {
  ibv_ah_attr vector{};
  vector.is_global = 1;
  vector.port_num = kPortOfIdentifier;
  vector.grh.dgid = destination;
  vector.grh.hop_limit = kHopLimit;
  const ibv_gid own = ToGid(source());
  ibv_port_attr port{};
  if (ibv_query_port(verbs, kPortOfIdentifier, &port) != 0) return vector;
  // An address of 127.0.0.0/8 that is not configured leaves from the first.
  for (int index = 0; index < port.gid_tbl_len; ++index) {
    ibv_gid gid{};
    if (ibv_query_gid(verbs, kPortOfIdentifier, index, &gid) != 0 || memcmp(gid.raw, own.raw, sizeof gid.raw) != 0) continue;
    vector.grh.sgid_index = static_cast<uint8_t>(index);
    break;
  }
  return vector;
}

void Identifier::FillPath() {
  if (device_->is_iwarp()) return;
  // Programs for InfiniBand read the path record; this is what RoCE shows them.
  path_ = std::make_unique<ibv_sa_path_rec>();
  path_->sgid = route.addr.addr.ibaddr.sgid;
  path_->dgid = route.addr.addr.ibaddr.dgid;
  path_->pkey = 0xffff;
  path_->reversible = 1;
  path_->numb_path = 1;
  path_->hop_limit = kHopLimit;
  path_->mtu_selector = 2;  // exactly
  ibv_port_attr port{};
  if (ibv_query_port(verbs, kPortOfIdentifier, &port) != 0) port.active_mtu = IBV_MTU_1024;
  path_->mtu = static_cast<uint8_t>(port.active_mtu);
  path_->rate_selector = 2;
  path_->rate = IBV_RATE_10_GBPS;
  path_->packet_life_time_selector = 2;
  path_->packet_life_time = 14;  // 4.096 us * 2^14, as RoCE reports
  route.path_rec = path_.get();
  route.num_paths = 1;
}

int Identifier::ResolveRoute() {
  if (state() != State::kAddressResolved) return EINVAL;
  if (PostFault(sim::CmApi::FaultPoint::kResolveRoute)) return 0;
  FillPath();
  set_state(State::kRouteResolved);
  Post(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
  return 0;
}

}  // namespace weft::cm

using weft::cm::Identifier;
using weft::cm::Return;
using weft::transport::SocketAddress;

namespace {

// rdma_* take addresses without a length: the family tells it.
std::optional<SocketAddress> FromProgram(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) return SocketAddress::From(address, sizeof(sockaddr_in));
  if (address->sa_family == AF_INET6) return SocketAddress::From(address, sizeof(sockaddr_in6));
  return std::nullopt;
}

}  // namespace

WEFT_CM_EXPORT int rdma_bind_addr(rdma_cm_id* id, sockaddr* addr) {
  const auto address = FromProgram(addr);
  if (id == nullptr || !address) return Return(EINVAL);
  const auto keep = Identifier::Find(id);
  if (keep == nullptr) return Return(EINVAL);
  return Return(keep->Bind(*address));
}

WEFT_CM_EXPORT int rdma_resolve_addr(rdma_cm_id* id, sockaddr* src_addr, sockaddr* dst_addr, int /*timeout_ms*/) {
  const auto destination = FromProgram(dst_addr);
  // A zeroed source, as programs that keep a sockaddr_storage pass it, is none.
  const bool has_source = src_addr != nullptr && src_addr->sa_family != AF_UNSPEC;
  const auto source = has_source ? FromProgram(src_addr) : SocketAddress();
  if (id == nullptr || !destination || !source) return Return(EINVAL);
  const auto keep = Identifier::Find(id);
  if (keep == nullptr) return Return(EINVAL);
  Identifier& identifier = *keep;
  if (const int error = identifier.ResolveAddress(*source, *destination); error != 0) return Return(error);
  return Return(identifier.Complete());
}

WEFT_CM_EXPORT int rdma_resolve_route(rdma_cm_id* id, int /*timeout_ms*/) {
  if (id == nullptr) return Return(EINVAL);
  const auto keep = Identifier::Find(id);
  if (keep == nullptr) return Return(EINVAL);
  Identifier& identifier = *keep;
  if (const int error = identifier.ResolveRoute(); error != 0) return Return(error);
  return Return(identifier.Complete());
}
