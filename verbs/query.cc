#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "verbs/export.h"
#include "verbs/objects.h"

// Device, port, GID and P_Key queries.
#undef ibv_query_port

namespace weft::verbs {
namespace {

constexpr uint8_t kPort = 1;  // every device has one port
constexpr __be16 kDefaultPkey = 0xffff;
constexpr uint64_t kUnknownSpeed = 10'000;  // Mbit/s, for an interface that names none (lo): what ibv_query_port says then
// What programs see that were compiled before port_cap_flags2 existed.
constexpr size_t kCompatPortSize = offsetof(ibv_port_attr, port_cap_flags2);

// Brings the device's picture of its interface up to date: link state and addresses change while programs run.
sim::DeviceInfo Refreshed(ibv_context* context) {
  Device* device = FromPublic(context->device);
  if (auto now = FromPublic(context)->rnic->ports().Current(device->name)) {
    device->Update(std::move(*now));
    return device->Info();
  }
  sim::DeviceInfo gone = device->Info();
  gone.up = false;
  return gone;
}

int QueryDevice(ibv_context* context, ibv_device_attr* attributes) {
  *attributes = FromPublic(context->device)->Info().Attributes();
  return 0;
}

int QueryDeviceEx(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attributes,
                  size_t size) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  if (size < offsetof(ibv_device_attr_ex, comp_mask) + sizeof attributes->comp_mask) return EINVAL;
  ibv_device_attr_ex full;
  memset(&full, 0, sizeof full);
  QueryDevice(context, &full.orig_attr);
  full.completion_timestamp_mask = UINT64_MAX;
  full.hca_core_clock = 1'000'000;  // kHz: the clock of query_rt_values and of time stamps counts nanoseconds
  full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
  full.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
  full.odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
                                                 IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_SRQ_RECV;
  if (context->device->transport_type == IBV_TRANSPORT_IB) {
    full.odp_caps.per_transport_caps.rc_odp_caps |= IBV_ODP_SUPPORT_ATOMIC;
    full.xrc_odp_caps = full.odp_caps.per_transport_caps.rc_odp_caps;
    full.odp_caps.per_transport_caps.ud_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
    full.pci_atomic_caps.fetch_add = IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP;
    full.pci_atomic_caps.compare_swap = IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP;
  }
  full.cq_mod_caps = {UINT16_MAX, UINT16_MAX};
  full.max_dm_size = kMaxDeviceMemory;
  full.phys_port_cnt_ex = full.orig_attr.phys_port_cnt;
  memset(attributes, 0, size);
  memcpy(attributes, &full, std::min(size, sizeof full));
  return 0;
}

int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attributes, size_t size) {
  if (port != kPort) return EINVAL;
  const ibv_port_attr full = Refreshed(context).PortAttributes();
  memset(static_cast<void*>(attributes), 0, size);
  memcpy(static_cast<void*>(attributes), &full, std::min(size, sizeof full));
  return 0;
}

int QueryRtValues(ibv_context*, ibv_values_ex* values) {
  const bool wanted = values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK;
  values->comp_mask = 0;
  if (!wanted) return 0;
  timespec now{};
  if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return errno;
  // The count of the clock, as adapters give it, all of it in tv_nsec: programs compare that with time stamps of completions.
  values->raw_clock.tv_sec = 0;
  values->raw_clock.tv_nsec = now.tv_sec * 1'000'000'000 + now.tv_nsec;
  values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  return 0;
}

int CompatQueryPort(ibv_context* context, uint8_t port, _compat_ibv_port_attr* attributes) {
  return QueryPort(context, port, reinterpret_cast<ibv_port_attr*>(attributes), kCompatPortSize);
}

// EINVAL: outside the table; ENODATA: an empty place in it.
int FindGid(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry) {
  if (port != kPort) return EINVAL;
  const Device* device = FromPublic(context->device);
  std::lock_guard lock(device->mutex);  // instead of Info(): programs walk the whole table
  const sim::DeviceInfo& info = device->info;
  if (index >= static_cast<uint32_t>(info.GidTableLength())) return EINVAL;
  static constexpr ibv_gid kNone = {};
  if (index >= info.gids.size() || memcmp(&info.gids[index], &kNone, sizeof kNone) == 0) return ENODATA;
  *entry = {};
  entry->gid = info.gids[index];
  entry->gid_index = index;
  entry->port_num = port;
  entry->gid_type = info.GidType();
  entry->ndev_ifindex = static_cast<uint32_t>(info.interface_index);
  return 0;
}

}  // namespace

void FillDeviceOperations(verbs_context* vctx) {
  vctx->query_device_ex = Reported<QueryDeviceEx>;
  vctx->query_port = Reported<QueryPort>;
  vctx->query_rt_values = Reported<QueryRtValues>;
  vctx->context.ops._compat_query_device = QueryDevice;
  vctx->context.ops._compat_query_port = Reported<CompatQueryPort>;
}

}  // namespace weft::verbs

WEFT_VERBS_API int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  return weft::verbs::QueryDevice(context, attributes);
}

WEFT_VERBS_API int ibv_query_port(ibv_context* context, uint8_t port, _compat_ibv_port_attr* attributes) {
  return weft::verbs::Report(weft::verbs::CompatQueryPort(context, port, attributes));
}

// rdma-core 62. `speed`: in 100 Mbit/s.
WEFT_VERBS_API int weft_query_port_speed(ibv_context* context, uint32_t port, uint64_t* speed) {
  if (port != weft::verbs::kPort) return weft::verbs::Report(EINVAL);
  const uint64_t mbps = weft::verbs::Refreshed(context).speed_mbps;
  *speed = (mbps != 0 ? mbps : weft::verbs::kUnknownSpeed) / 100;
  return 0;
}
WEFT_VERBS_SYMBOL(weft_query_port_speed, ibv_query_port_speed, "IBVERBS_1.16");

WEFT_VERBS_API int ibv_query_gid(ibv_context* context, uint8_t port, int index, ibv_gid* gid) {
  ibv_gid_entry entry = {};
  const int error = index < 0 ? EINVAL : weft::verbs::FindGid(context, port, static_cast<uint32_t>(index), &entry);
  if (error != 0 && error != ENODATA) {
    errno = error;
    return -1;
  }
  *gid = entry.gid;  // zero for an empty place
  return 0;
}

WEFT_VERBS_API int _ibv_query_gid_ex(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry,
                                     uint32_t flags, size_t entry_size) {
  if (flags != 0 || entry_size < sizeof(ibv_gid_entry)) return weft::verbs::Report(EOPNOTSUPP);
  memset(entry, 0, entry_size);
  return weft::verbs::Report(weft::verbs::FindGid(context, port, index, entry));
}

WEFT_VERBS_API ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t max_entries,
                                            uint32_t flags, size_t entry_size) {
  if (flags != 0 || entry_size < sizeof(ibv_gid_entry)) return -EOPNOTSUPP;
  auto* bytes = reinterpret_cast<unsigned char*>(entries);
  size_t count = 0;
  for (uint32_t index = 0;; ++index) {
    ibv_gid_entry entry;
    const int error = weft::verbs::FindGid(context, weft::verbs::kPort, index, &entry);
    if (error == ENODATA) continue;  // only places that are filled
    if (error != 0) break;
    if (count == max_entries) return -EINVAL;  // there are more
    memset(bytes + count * entry_size, 0, entry_size);
    memcpy(bytes + count * entry_size, &entry, sizeof entry);
    ++count;
  }
  return static_cast<ssize_t>(count);
}

// Private node; ibv_devinfo and perftest ask. The types are sysfs's: 0 is "IB/RoCE v1", which is also what the kernel says of
// iWARP and of an empty place, 1 is "RoCE v2".
WEFT_VERBS_API int weft_query_gid_type(ibv_context* context, uint8_t port, unsigned int index, unsigned int* type) {
  ibv_gid_entry entry = {};
  const int error = weft::verbs::FindGid(context, port, index, &entry);
  if (error != 0 && error != ENODATA) {
    errno = error;
    return -1;
  }
  *type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 1 : 0;
  return 0;
}
WEFT_PRIVATE_SYMBOL_SINCE_34(weft_query_gid_type, ibv_query_gid_type);

WEFT_VERBS_API int ibv_query_pkey(ibv_context* context, uint8_t port, int index, __be16* pkey) {
  const auto attributes = weft::verbs::FromPublic(context->device)->Info().PortAttributes();
  if (port != weft::verbs::kPort || index < 0 || index >= attributes.pkey_tbl_len) {
    errno = EINVAL;
    return -1;
  }
  *pkey = weft::verbs::kDefaultPkey;
  return 0;
}

WEFT_VERBS_API int ibv_get_pkey_index(ibv_context* context, uint8_t port, __be16 pkey) {
  __be16 first = 0;
  if (ibv_query_pkey(context, port, 0, &first) != 0) return -1;
  if (first == pkey) return 0;
  errno = EINVAL;
  return -1;
}
