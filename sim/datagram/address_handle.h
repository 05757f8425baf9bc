#ifndef SIM_DATAGRAM_ADDRESS_HANDLE_H_
#define SIM_DATAGRAM_ADDRESS_HANDLE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "sim/memory/memory.h"
#include "transport/socket_address.h"

namespace weft::sim {

// The object behind an ibv_ah: the destination of datagrams. Immutable. The program owns it (ibv_create_ah,
// ibv_destroy_ah), and keeps it until the work requests that name it are posted.
struct AddressHandle : ibv_ah {
  std::shared_ptr<Pd> domain;
  transport::SocketAddress remote;  // port 0: the queue pair's number gives the port
  transport::SocketAddress local;   // address of the source GID, port 0; no family: the system chooses
  uint32_t interface = 0;           // interface index, for groups and link-local addresses; 0: the system chooses
  bool group = false;
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
};

}  // namespace weft::sim

#endif  // SIM_DATAGRAM_ADDRESS_HANDLE_H_
