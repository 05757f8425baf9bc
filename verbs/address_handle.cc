#include "sim/datagram/address_handle.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/settings.h"
#include "sim/device/gid.h"
#include "verbs/export.h"
#include "verbs/objects.h"

// Address handles: where unreliable datagrams go.
namespace weft::verbs {
namespace {

constexpr uint8_t kPortOfHandle = 1;
constexpr uint8_t kAnyHop = 0xff;

bool HasDatagrams(ibv_context* context) { return FromPublic(context)->rnic->settings().persona == Persona::kRoce; }

// An address by LID, without GRH. All that has our port's LID is our port (qperf names its own host's like this).
int FillByLid(const sim::DeviceInfo& device, const ibv_ah_attr& attributes, sim::AddressHandle& handle) {
  if (attributes.dlid != device.PortAttributes().lid) return EINVAL;
  for (const transport::SocketAddress& own : device.addresses) {
    if (own.family() == 0) continue;
    handle.remote = handle.local = own;
    return 0;
  }
  return EINVAL;
}

// 0 or an errno: EINVAL (no GRH, which RoCE always has beyond the own host; a port, GID or GID index that is none).
int Fill(ibv_pd* pd, const ibv_ah_attr& attributes, sim::AddressHandle& handle) {
  if (attributes.port_num != kPortOfHandle) return EINVAL;
  const sim::DeviceInfo device = FromPublic(pd->context->device)->Info();
  if (!attributes.is_global) return FillByLid(device, attributes, handle);
  const ibv_global_route& route = attributes.grh;
  if (route.sgid_index >= device.addresses.size() || device.addresses[route.sgid_index].family() == 0) return EINVAL;
  const auto interface = static_cast<uint32_t>(device.interface_index);
  handle.remote = sim::AddressOf(route.dgid, interface);
  if (handle.remote.family() == 0) return EINVAL;
  handle.group = sim::IsGroup(route.dgid);
  const transport::SocketAddress& local = device.addresses[route.sgid_index];
  // A source of the other family says only which device it is.
  if (local.family() == handle.remote.family()) handle.local = local;
  if (handle.group) handle.interface = interface;
  handle.traffic_class = route.traffic_class;
  handle.hop_limit = route.hop_limit;
  return 0;
}

int IndexOfGid(const sim::DeviceInfo& device, const ibv_gid& gid) {
  for (size_t i = 0; i < device.gids.size(); ++i) {
    if (memcmp(device.gids[i].raw, gid.raw, sizeof gid.raw) == 0) return static_cast<int>(i);
  }
  return -1;
}

// A group's datagram is answered from any address of the device that has the family.
int FindSource(const sim::DeviceInfo& device, const ibv_gid& destination) {
  if (!sim::IsGroup(destination)) return IndexOfGid(device, destination);
  const int family = sim::AddressOf(destination, 0).family();
  for (size_t i = 0; i < device.addresses.size(); ++i) {
    if (device.addresses[i].family() == family) return static_cast<int>(i);
  }
  return -1;
}

struct Route {
  ibv_gid source, destination;  // of the datagram that came
  uint32_t flow_label = 0;
  uint8_t traffic_class = 0;
};

// The two forms that the 40 bytes in front of a datagram have: 20 bytes of nothing and an IPv4 header, or a GRH.
Route ReadHeader(const ibv_grh& grh) {
  Route route{};
  uint8_t bytes[sizeof grh];
  memcpy(bytes, &grh, sizeof bytes);
  if (bytes[20] == 0x45 && std::all_of(bytes, bytes + 20, [](uint8_t byte) { return byte == 0; })) {
    route.source.raw[10] = route.source.raw[11] = route.destination.raw[10] = route.destination.raw[11] = 0xff;
    memcpy(&route.source.raw[12], bytes + 32, 4);
    memcpy(&route.destination.raw[12], bytes + 36, 4);
    route.traffic_class = bytes[21];
    return route;
  }
  route.source = grh.sgid;
  route.destination = grh.dgid;
  const uint32_t first = ntohl(grh.version_tclass_flow);
  route.flow_label = first & 0xfffff;
  route.traffic_class = static_cast<uint8_t>(first >> 20);
  return route;
}

}  // namespace
}  // namespace weft::verbs

using weft::verbs::Fail;
using weft::verbs::FromPublic;

// Errors: EOPNOTSUPP (the iwarp persona), EINVAL, ENOENT, ENOMEM (max_ah).
WEFT_VERBS_API ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  if (!weft::verbs::Known(FromPublic(pd))) return Fail<ibv_ah>(ENOENT);
  if (!weft::verbs::HasDatagrams(pd->context)) return Fail<ibv_ah>(EOPNOTSUPP);
  if (const int error = weft::verbs::Fault(weft::faults::Call::kCreateAh, pd->context)) return Fail<ibv_ah>(error);
  auto handle = std::make_unique<weft::verbs::Ah>();
  if (int error = weft::verbs::Fill(pd, *attributes, *handle)) return Fail<ibv_ah>(error);
  if (!FromPublic(pd->context->device)->ahs.Take()) return Fail<ibv_ah>(ENOMEM);
  weft::verbs::Name(*handle, pd->context);
  handle->pd = pd;
  handle->domain = FromPublic(pd)->domain;
  handle->domain->users.fetch_add(1);
  return handle.release();
}

WEFT_VERBS_API int ibv_destroy_ah(ibv_ah* ah) {
  auto* handle = FromPublic(ah);
  if (!weft::verbs::Known(handle)) return weft::verbs::Report(ENOENT);
  handle->domain->users.fetch_sub(1);
  FromPublic(ah->context->device)->ahs.Return();
  delete handle;
  return 0;
}

// Errors: EINVAL (a port that is none, a completion without GRH, a GRH whose destination is none of the device's GIDs).
WEFT_VERBS_API int ibv_init_ah_from_wc(ibv_context* context, uint8_t port, ibv_wc* wc, ibv_grh* grh, ibv_ah_attr* attributes) {
  using namespace weft::verbs;
  const int error = !HasDatagrams(context) ? EOPNOTSUPP : port != kPortOfHandle || !(wc->wc_flags & IBV_WC_GRH) ? EINVAL : 0;
  if (error != 0) {
    errno = error;
    return -1;
  }
  const Route route = ReadHeader(*grh);
  const int source = FindSource(FromPublic(context->device)->Info(), route.destination);
  if (source < 0) {
    errno = EINVAL;
    return -1;
  }
  *attributes = {};
  attributes->port_num = port;
  attributes->is_global = 1;
  attributes->sl = wc->sl;
  attributes->grh.dgid = route.source;
  attributes->grh.sgid_index = static_cast<uint8_t>(source);
  attributes->grh.flow_label = route.flow_label;
  attributes->grh.traffic_class = route.traffic_class;
  attributes->grh.hop_limit = kAnyHop;
  return 0;
}

WEFT_VERBS_API ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port) {
  ibv_ah_attr attributes;
  return ibv_init_ah_from_wc(pd->context, port, wc, grh, &attributes) == 0 ? ibv_create_ah(pd, &attributes) : nullptr;
}

// There is no link layer of ours to address: the kernel's IP finds the next hop.
WEFT_VERBS_API int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, uint8_t[ETHERNET_LL_SIZE], uint16_t*) {
  return weft::verbs::Report(EOPNOTSUPP);
}
