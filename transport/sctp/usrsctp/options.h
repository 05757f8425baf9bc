#ifndef TRANSPORT_SCTP_USRSCTP_OPTIONS_H_
#define TRANSPORT_SCTP_USRSCTP_OPTIONS_H_

#include <usrsctp.h>

#include <cstdint>
#include <vector>

#include "transport/sctp/settings.h"
#include "transport/socket_address.h"

// Settings, addresses and ports of a usrsctp socket. All require the stack's lock; results are errnos.
namespace weft::transport::sctp {

// A non-blocking socket for a connection or a listener. `mtu`: size of an IP packet in bytes.
int OpenSocket(int family, const Settings& settings, uint32_t mtu, bool over_udp, struct socket** opened);
// Sets the packet size of an accepted association, which it does not inherit from its listener. Both ends send large
// packets only if told.
int SetPacketSize(struct socket* socket, int family, uint32_t mtu, bool over_udp);
// `port` in host byte order; 0: one is chosen.
int Bind(struct socket* socket, int family, const std::vector<SocketAddress>& addresses, uint16_t port);
// Sets when a path is left. `leave_early`: also when it is potentially failed (RFC 7829).
int SetThresholds(struct socket* socket, int family, const Settings& settings, bool leave_early);
int SetUdpPort(struct socket* socket, uint16_t port);
uint16_t UdpPortOf(struct socket* socket, const SocketAddress& peer);

std::vector<SocketAddress> LocalAddressesOf(struct socket* socket);
std::vector<SocketAddress> PeerAddressesOf(struct socket* socket);

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_OPTIONS_H_
