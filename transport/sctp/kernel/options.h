#ifndef TRANSPORT_SCTP_KERNEL_OPTIONS_H_
#define TRANSPORT_SCTP_KERNEL_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "transport/sctp/kernel/uapi.h"
#include "transport/sctp/settings.h"
#include "transport/socket_address.h"

// Settings, addresses and state of a socket of the kernel's SCTP (RFC 6458, one-to-one style). Results are errnos.
namespace weft::transport::sctp {

// A non-blocking socket for a connection or a listener. `udp_port`: of the peer (RFC 6951); 0: directly over IP.
int OpenSocket(int family, const Settings& settings, uint16_t udp_port, int* opened);
// `port` in host byte order; 0: one is chosen.
int Bind(int fd, const std::vector<SocketAddress>& addresses, uint16_t port);
// Starts to connect; the outcome is an event.
int ConnectTo(int fd, const std::vector<SocketAddress>& addresses);

std::vector<SocketAddress> LocalAddressesOf(int fd);
std::vector<SocketAddress> PeerAddressesOf(int fd);
uint16_t UdpPortOf(int fd, const SocketAddress& peer);
std::optional<sctp_status> StatusOf(int fd);
std::optional<sctp_paddrinfo> InfoOf(int fd, const SocketAddress& peer);
int MakePrimary(int fd, const SocketAddress& peer);
// Number of acknowledgements (SACK chunks) received.
std::optional<uint64_t> AcknowledgementsOf(int fd);
// Bytes of unacknowledged messages, with the kernel's overhead.
std::optional<uint32_t> UnacknowledgedOf(int fd);

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_KERNEL_OPTIONS_H_
