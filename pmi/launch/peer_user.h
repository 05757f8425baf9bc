#ifndef PMI_LAUNCH_PEER_USER_H_
#define PMI_LAUNCH_PEER_USER_H_

#include <sys/types.h>

#include <istream>
#include <optional>

#include "transport/socket_address.h"

namespace weft::pmi {

// Whose the other end of a TCP connection over 127.0.0.1 is, as /proc/net/tcp of this network namespace says. nullopt: it is not there
// (any more), or the connection is no such one.
std::optional<uid_t> UserOfPeer(int fd);

// The same from a text in the form of that file, for the socket that is bound to `own` and connected to `other`, both of IPv4.
std::optional<uid_t> UserOfSocket(std::istream& table, const transport::SocketAddress& own, const transport::SocketAddress& other);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_PEER_USER_H_
