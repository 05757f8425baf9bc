#ifndef TRANSPORT_SCTP_ARGUMENTS_H_
#define TRANSPORT_SCTP_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/sctp/sctp.h"
#include "transport/sctp/settings.h"
#include "transport/socket_address.h"

// What Connect() and Listen() are given, whatever implements them.
namespace weft::transport::sctp {

// EINVAL, with a value out of its range.
int Check(const Settings& settings);
// EINVAL: too many; EAFNOSUPPORT; EADDRNOTAVAIL: a link-local one of IPv6, whose scope no packet of SCTP bears.
int CheckAddresses(const std::vector<SocketAddress>& addresses);
// EINVAL: no address, no port, ports that differ; or as CheckAddresses().
int Check(const Peer& peer);

// AF_INET6 if any of them is of IPv6.
int FamilyFor(const std::vector<SocketAddress>& some, const std::vector<SocketAddress>& others);
// As the socket interface of SCTP (RFC 6458) wants several: one behind the other, and back again.
std::vector<uint8_t> Packed(const std::vector<SocketAddress>& addresses);
std::vector<SocketAddress> Unpacked(const void* addresses, size_t count);

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_ARGUMENTS_H_
