#ifndef TRANSPORT_SCTP_ARGUMENTS_H_
#define TRANSPORT_SCTP_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/sctp/sctp.h"
#include "transport/sctp/settings.h"
#include "transport/socket_address.h"

// Checks of the arguments of Connect() and Listen(), for all implementations.
namespace weft::transport::sctp {

// EINVAL: a value is out of range.
int Check(const Settings& settings);
// EINVAL: too many; EAFNOSUPPORT; EADDRNOTAVAIL: a link-local IPv6 address, whose scope no SCTP packet carries.
int CheckAddresses(const std::vector<SocketAddress>& addresses);
// EINVAL: no address, no port, or different ports; otherwise as CheckAddresses().
int Check(const Peer& peer);

// AF_INET6 if any of them is an IPv6 address.
int FamilyFor(const std::vector<SocketAddress>& some, const std::vector<SocketAddress>& others);
// The form of address lists in SCTP's socket interface (RFC 6458): one behind the other; and back again.
std::vector<uint8_t> Packed(const std::vector<SocketAddress>& addresses);
std::vector<SocketAddress> Unpacked(const void* addresses, size_t count);

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_ARGUMENTS_H_
