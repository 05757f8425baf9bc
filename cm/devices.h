#ifndef CM_DEVICES_H_
#define CM_DEVICES_H_

#include <infiniband/verbs.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport/socket_address.h"

namespace weft::cm {

// An opened RDMA device. Stays open as long as the process lives (rdma_get_devices(3)): every identifier bound to the
// device shows the same context and the same default protection domain.
struct Device {
  std::string name;
  ibv_context* verbs = nullptr;
  ibv_pd* pd = nullptr;                 // the default protection domain
  uint8_t max_responder_resources = 0;  // IRD
  uint8_t max_initiator_depth = 0;      // ORD

  bool is_iwarp() const { return verbs->device->transport_type == IBV_TRANSPORT_IWARP; }
  // The default domain of extended reliable connections, opened when first asked for. nullptr and errno: there is none (EOPNOTSUPP in
  // the iwarp persona).
  ibv_xrcd* XrcDomain();

 private:
  std::mutex mutex_;  // guards xrcd_
  ibv_xrcd* xrcd_ = nullptr;
};

// The devices that libibverbs offers, opened when first asked for. Thread safe.
class Devices {
 public:
  static Devices& Process();

  // All of them. Empty: there is none (errno is set).
  std::vector<Device*> All();
  // Whether there is one; else errno is ENODEV, and a line says why.
  bool Exist();
  // The device that has `address` (its port is ignored). nullptr: none has.
  Device* WithAddress(const transport::SocketAddress& address);

 private:
  void Refresh();                                           // requires mutex_
  Device* Search(const transport::SocketAddress& address);  // requires mutex_

  std::mutex mutex_;  // guards devices_
  std::vector<std::unique_ptr<Device>> devices_;
};

// The address as a GID: IPv6, or IPv4 mapped into it.
ibv_gid ToGid(const transport::SocketAddress& address);

}  // namespace weft::cm

#endif  // CM_DEVICES_H_
