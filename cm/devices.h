#ifndef CM_DEVICES_H_
#define CM_DEVICES_H_

#include <infiniband/verbs.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport/socket_address.h"

namespace weft::cm {

// An opened RDMA device. Stays open until the process ends (rdma_get_devices(3)). All identifiers bound to the device
// show the same context and the same default protection domain.
struct Device {
  std::string name;
  ibv_context* verbs = nullptr;
  ibv_pd* pd = nullptr;                 // the default protection domain
  uint8_t max_responder_resources = 0;  // IRD
  uint8_t max_initiator_depth = 0;      // ORD

  bool is_iwarp() const { return verbs->device->transport_type == IBV_TRANSPORT_IWARP; }
  // The default XRC domain of the device, opened on first use. nullptr and errno: there is none (EOPNOTSUPP with the
  // iwarp persona).
  ibv_xrcd* XrcDomain();

 private:
  std::mutex mutex_;  // guards xrcd_
  ibv_xrcd* xrcd_ = nullptr;
};

// The devices that libibverbs offers, opened on first use. Thread safe.
class Devices {
 public:
  static Devices& Process();

  // All devices. Empty: there is none (errno is set).
  std::vector<Device*> All();
  // Whether there is a device. If not, sets errno to ENODEV and logs the reason.
  bool Exist();
  // The device with `address` (its port is ignored). nullptr: there is none.
  Device* WithAddress(const transport::SocketAddress& address);

 private:
  void Refresh();                                           // requires mutex_
  Device* Search(const transport::SocketAddress& address);  // requires mutex_

  std::mutex mutex_;  // guards devices_
  std::vector<std::unique_ptr<Device>> devices_;
};

// The address as a GID: IPv6, or IPv4-mapped.
ibv_gid ToGid(const transport::SocketAddress& address);

}  // namespace weft::cm

#endif  // CM_DEVICES_H_
