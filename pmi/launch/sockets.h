#ifndef PMI_LAUNCH_SOCKETS_H_
#define PMI_LAUNCH_SOCKETS_H_

#include <chrono>
#include <string>
#include <vector>

#include "pmi/launch/port_range.h"
#include "transport/socket_address.h"

// Listening, connecting, and the addresses of this host.
namespace weft::pmi {

// A host that has not answered for this long is gone.
inline constexpr std::chrono::seconds kSilence{30};

// Sets no delay and keepalive: on an idle connection, the kernel detects within half a minute that the host is gone.
// While data is in flight, Connection::LookForPeer detects it. TCP_USER_TIMEOUT is not used, because it would also end
// a connection to a program that merely does not read, such as mpiexec while its output is not read.
void ConfigureTcp(int fd);

// A connected descriptor, closed on exec. -1: the numeric address does not answer within a few seconds.
int Dial(const std::string& address, const std::string& port);
// Who can connect to a port: any host, or only processes of this host, at 127.0.0.1.
enum class Reach { kAnywhere, kThisHost };
// Listens on a free port of the range. -1 and errno on failure.
int Listen(int* port, PortRange range = {}, Reach reach = Reach::kAnywhere);
// The addresses at which other hosts may reach this one: `first`, if it is known, then those of the interfaces,
// loopback last. With `interface`: only the addresses of that interface.
std::vector<std::string> AddressesFor(const std::string& first, const std::string& interface);

// The numeric address without a port. A dual-stack listener shows IPv4 peers as ::ffff:a.b.c.d; they become a.b.c.d.
std::string PlainHost(const transport::SocketAddress& address);
// The numeric address of this end of a connection; empty: it has none.
std::string OwnAddress(int fd);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_SOCKETS_H_
