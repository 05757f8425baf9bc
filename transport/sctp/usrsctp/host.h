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

// Where a process's SCTP leaves and enters: its sockets, and what is to be known of the addresses of its host. Of a
// process there is one; a test in virtual time has as many as it has hosts.
struct Host {
  Network* network = nullptr;
  std::function<std::vector<HostAddress>()> list_addresses;
  // From which of the host's addresses `to` is reached; nullopt: it is not; no family: that cannot be told now.
  std::function<std::optional<SocketAddress>(const SocketAddress& to)> source_for;
  std::unique_ptr<DatagramSocket> udp;               // null: nothing goes over UDP
  std::unique_ptr<DatagramSocket> native4, native6;  // null: nothing goes over IP
  std::vector<WatchId> watches;                      // of the sockets
  // A port of SCTP in IP that no other process of the host has as long as `held` lives; null: usrsctp chooses, among this process's.
  // Errors: EMFILE, EADDRINUSE (none is left) ...
  struct ReservedPort {
    uint16_t port = 0;
    std::shared_ptr<void> held;
  };
  std::function<Result<ReservedPort, int>()> reserve_port;
  // For captures, null: nobody looks. Each packet that is sent, and each that comes but for those that this process sent; with the
  // ports of UDP, 0: in IP.
  std::function<void(const SocketAddress& from, const SocketAddress& to, std::span<const uint8_t> packet)> tap;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_HOST_H_
