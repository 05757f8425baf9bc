#include "cm/devices.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "cm/export.h"

namespace weft::cm {
namespace {

constexpr uint8_t kPortOfDevice = 1;

bool IsLinkLocal(const ibv_gid& gid) { return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80; }

// 127.0.0.0/8 mapped, or ::1.
bool IsLoopback(const ibv_gid& gid) {
  static constexpr uint8_t kMapped[13] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127};
  static constexpr uint8_t kIpv6[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return memcmp(gid.raw, kMapped, sizeof kMapped) == 0 || memcmp(gid.raw, kIpv6, sizeof kIpv6) == 0;
}

template <typename Predicate>
bool AnyGid(ibv_context* verbs, Predicate matches) {
  ibv_port_attr port{};
  if (ibv_query_port(verbs, kPortOfDevice, &port) != 0) return false;
  for (int index = 0; index < port.gid_tbl_len; ++index) {
    ibv_gid gid{};
    if (ibv_query_gid(verbs, kPortOfDevice, index, &gid) == 0 && matches(index, gid)) return true;
  }
  return false;
}

bool IsOnInterface(ibv_context* verbs, int gid_index, uint32_t interface_index) {
  ibv_gid_entry entry{};
  return ibv_query_gid_ex(verbs, kPortOfDevice, gid_index, &entry, 0) != 0 || entry.ndev_ifindex == interface_index;
}

uint8_t Clip(int limit) { return static_cast<uint8_t>(std::clamp(limit, 0, 254)); }  // 255 means "as many as can be"

std::unique_ptr<Device> Open(ibv_device* from) {
  auto device = std::make_unique<Device>();
  device->name = ibv_get_device_name(from);
  device->verbs = ibv_open_device(from);
  if (device->verbs == nullptr) return nullptr;
  ibv_device_attr attributes{};
  if (ibv_query_device(device->verbs, &attributes) == 0) device->pd = ibv_alloc_pd(device->verbs);
  if (device->pd == nullptr) {
    const int error = errno;
    ibv_close_device(device->verbs);
    errno = error;
    return nullptr;
  }
  device->max_responder_resources = Clip(attributes.max_qp_rd_atom);
  device->max_initiator_depth = Clip(attributes.max_qp_init_rd_atom);
  return device;
}

}  // namespace

ibv_xrcd* Device::XrcDomain() {
  std::lock_guard lock(mutex_);
  if (xrcd_ != nullptr) return xrcd_;
  ibv_xrcd_init_attr attributes{};
  attributes.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  attributes.fd = -1;
  attributes.oflags = O_CREAT;
  return xrcd_ = ibv_open_xrcd(verbs, &attributes);
}

ibv_gid ToGid(const transport::SocketAddress& address) {
  ibv_gid gid{};
  if (address.family() == AF_INET) {
    gid.raw[10] = gid.raw[11] = 0xff;
    memcpy(gid.raw + 12, &reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr, 4);
  } else if (address.family() == AF_INET6) {
    memcpy(gid.raw, &reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr, 16);
  }
  return gid;
}

Devices& Devices::Process() {
  // Never destroyed: a program's threads may outlive main. A fork's child opens its own: what its parent opened belongs to the
  // parent's RNIC.
  static std::atomic<Devices*> devices = [] {
    pthread_atfork(nullptr, nullptr, [] { devices = new Devices; });
    return new Devices;
  }();
  return *devices;
}

std::vector<Device*> Devices::All() {
  std::lock_guard lock(mutex_);
  Refresh();
  std::vector<Device*> all;
  for (const auto& device : devices_) all.push_back(device.get());
  return all;
}

bool Devices::Exist() {
  {
    std::lock_guard lock(mutex_);
    if (devices_.empty()) Refresh();
    if (!devices_.empty()) return true;
  }
  const char* const wanted = secure_getenv("WEFT_DEVICES");
  LogWarning(Format("there is no RDMA device: no network interface%s%s has an address (weft devices lists those that do)",
                    wanted != nullptr && *wanted != 0 ? " of WEFT_DEVICES=" : "", wanted != nullptr ? wanted : ""));
  errno = ENODEV;
  return false;
}

Device* Devices::WithAddress(const transport::SocketAddress& address) {
  std::lock_guard lock(mutex_);
  if (Device* device = Search(address)) return device;
  Refresh();  // its interface may be new
  return Search(address);
}

void Devices::Refresh() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr) return;
  for (int i = 0; i < count; ++i) {
    const char* name = ibv_get_device_name(list[i]);
    const bool known = std::any_of(devices_.begin(), devices_.end(), [&](const auto& d) { return d->name == name; });
    if (known) continue;
    if (auto device = Open(list[i])) devices_.push_back(std::move(device));
  }
  ibv_free_device_list(list);
  if (devices_.empty()) errno = ENODEV;
}

Device* Devices::Search(const transport::SocketAddress& address) {
  const ibv_gid wanted = ToGid(address);
  uint32_t scope = 0;  // link-local addresses repeat on every interface
  if (address.family() == AF_INET6 && IsLinkLocal(wanted)) {
    scope = reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_scope_id;
  }
  for (const auto& device : devices_) {
    const bool has = AnyGid(device->verbs, [&](int index, const ibv_gid& gid) {
      return memcmp(gid.raw, wanted.raw, sizeof gid.raw) == 0 &&
             (scope == 0 || IsOnInterface(device->verbs, index, scope));
    });
    if (has) return device.get();
  }
  if (!IsLoopback(wanted)) return nullptr;
  // Any address of 127.0.0.0/8 is local, but only 127.0.0.1 is configured.
  for (const auto& device : devices_) {
    if (AnyGid(device->verbs, [](int, const ibv_gid& gid) { return IsLoopback(gid); })) return device.get();
  }
  return nullptr;
}

}  // namespace weft::cm

WEFT_CM_EXPORT ibv_context** rdma_get_devices(int* num_devices) {
  if (num_devices != nullptr) *num_devices = 0;
  const std::vector<weft::cm::Device*> devices = weft::cm::Devices::Process().All();
  if (devices.empty()) {
    errno = ENODEV;
    return nullptr;
  }
  auto** list = static_cast<ibv_context**>(calloc(devices.size() + 1, sizeof(ibv_context*)));
  if (list == nullptr) return nullptr;
  for (size_t i = 0; i < devices.size(); ++i) list[i] = devices[i]->verbs;
  if (num_devices != nullptr) *num_devices = static_cast<int>(devices.size());
  return list;
}

WEFT_CM_EXPORT void rdma_free_devices(ibv_context** list) { free(list); }
