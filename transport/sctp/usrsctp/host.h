#ifndef TRANSPORT_SCTP_USRSCTP_HOST_H_
#define TRANSPORT_SCTP_USRSCTP_HOST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/network.h"
#include "transport/socket_address.h"

namespace weft::transport::sctp {

struct HostAddress {
  SocketAddress address;  // port 0
  std::string interface;
  uint32_t mtu = 0;  // bytes of an IP packet
};

// Where a process's SCTP is connected to its host: sockets, and information about the host's addresses. A process has
// one; a test in virtual time has one for each simulated host.
struct Host {
  Network* network = nullptr;
  std::function<std::vector<HostAddress>()> list_addresses;
  // The address of the host from which `to` is reached. nullopt: `to` is unreachable; no family: unknown at the moment.
  std::function<std::optional<SocketAddress>(const SocketAddress& to)> source_for;
  std::unique_ptr<DatagramSocket> udp;               // null: no packets in UDP
  std::unique_ptr<DatagramSocket> native4, native6;  // null: no packets directly in IP
  std::vector<WatchId> watches;                      // of the sockets
  // A port for SCTP over IP that no other process of the host gets while `held` lives. null: usrsctp chooses one that
  // is free in this process. Errors: EMFILE, EADDRINUSE (none is left) ...
  struct ReservedPort {
    uint16_t port = 0;
    std::shared_ptr<void> held;
  };
  std::function<Result<ReservedPort, int>()> reserve_port;
  // For captures; null: none. Called for each packet that is sent, and for each received packet that another process
  // sent. The ports are those of UDP; 0: directly over IP.
  std::function<void(const SocketAddress& from, const SocketAddress& to, std::span<const uint8_t> packet)> tap;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_HOST_H_
