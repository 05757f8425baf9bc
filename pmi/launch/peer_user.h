#ifndef PMI_LAUNCH_PEER_USER_H_
#define PMI_LAUNCH_PEER_USER_H_

#include <sys/types.h>

#include <istream>
#include <optional>

#include "transport/socket_address.h"

namespace weft::pmi {

// The user of the other end of a TCP connection over 127.0.0.1, according to /proc/net/tcp of this network namespace.
// nullopt: it is not listed (any more), or it is another kind of connection.
std::optional<uid_t> UserOfPeer(int fd);

// The same from a text in the format of that file, for the socket that is bound to `own` and connected to `other`, both
// IPv4.
std::optional<uid_t> UserOfSocket(std::istream& table, const transport::SocketAddress& own, const transport::SocketAddress& other);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_PEER_USER_H_
