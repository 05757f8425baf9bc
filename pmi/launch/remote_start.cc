#include "pmi/launch/remote_start.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <sstream>
#include <utility>

#include "base/hex.h"
#include "pmi/launch/greeting.h"
#include "transport/interfaces.h"
#include "transport/socket_address.h"

namespace weft::pmi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kDialLimit{5};       // for one address to answer
constexpr seconds kProxyPatience{60};  // of a proxy, while mpiexec is there but has no room for it
constexpr milliseconds kFirstRetry{100}, kLongestRetry{1000};

// Proves to what listens at the other end of `fd` that it was invited, and learns that it is mpiexec. `closed`: it hung
// up without having said anything wrong.
bool GreetMpiexec(int fd, const JobSecret& secret, const std::string& node, bool* closed) {
  *closed = true;
  const auto challenge = ReadLine(fd, Clock::now() + kGreetingLimit);
  if (!challenge) return false;
  std::istringstream words(*challenge);
  std::string name, nonce;
  words >> name >> nonce;
  *closed = false;
  if (name != kMpiexec || nonce.size() != 2 * sizeof(Nonce)) return false;
  const std::string own_nonce = HexOf(NewNonce());
  const Said said(node, nonce, own_nonce);
  if (!SendText(fd, std::string(kProxy) + " " + node + " " + own_nonce + " " +
                        HexOf(secret.Prove(kProxy, said.bytes())) + "\n"))
    return false;
  const auto reply = ReadLine(fd, Clock::now() + kGreetingLimit);
  *closed = !reply;
  const std::string start = std::string(kMpiexec) + " ";
  return reply && reply->starts_with(start) && Proves(reply->substr(start.size()), secret, kMpiexec, said);
}

}  // namespace

int Dial(const std::string& address, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), port.c_str(), &hints, &found) != 0) return -1;
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool connected = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  if (!connected && fd >= 0 && errno == EINPROGRESS) {
    pollfd entry{fd, POLLOUT, 0};
    int error = 0;
    socklen_t length = sizeof(error);
    connected = poll(&entry, 1, static_cast<int>(milliseconds(kDialLimit).count())) == 1 &&
                getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
  }
  if (connected) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

std::vector<std::string> AddressesFor(const std::string& first, const std::string& interface) {
  std::vector<std::string> addresses;
  const auto add = [&](const std::string& address) {
    if (!address.empty() && std::find(addresses.begin(), addresses.end(), address) == addresses.end())
      addresses.push_back(address);
  };
  if (interface.empty()) add(first);
  const auto own = transport::ListAddresses();
  for (const bool loopback : {false, true}) {
    for (const auto& [label, up, running, is_loopback, address] : own) {
      if (!up || is_loopback != loopback || (!interface.empty() && interface != label)) continue;
      const std::string host = address.host();
      if (host.find('%') == std::string::npos) add(host);  // link-local ones mean nothing elsewhere
    }
  }
  return addresses;
}

namespace {

// -1 and errno.
int BindIpv4(int port, in_addr_t address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  name.sin_addr.s_addr = htonl(address);
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0) return fd;
  const int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

// A socket bound to the port of all addresses, of both families where there is IPv6. -1 and errno.
int BindAnywhere(int port) {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(static_cast<uint16_t>(port));
  const int off = 0;
  if (fd >= 0) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&any6), sizeof(any6)) == 0) return fd;
  if (fd >= 0) close(fd);
  return BindIpv4(port, INADDR_ANY);
}

}  // namespace

int Listen(int* port, PortRange range, Reach reach) {
  int fd = -1;
  for (int wanted = range.first; fd < 0 && wanted <= range.last; ++wanted) {
    fd = reach == Reach::kThisHost ? BindIpv4(wanted, INADDR_LOOPBACK) : BindAnywhere(wanted);
    // Two that have bound a port both may find out only now that it is the other's.
    if (fd >= 0 && listen(fd, 128) != 0) {
      const int error = errno;
      close(std::exchange(fd, -1));
      errno = error;
    }
  }
  if (fd < 0) return -1;
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length);
  // The port stands at the same place in both families.
  *port = ntohs(reinterpret_cast<sockaddr_in&>(bound).sin_port);
  return fd;
}

Result<Invited, PmiError> AcceptInvitation(int input) {
  const auto line = ReadLine(input, Clock::now() + kStartLimit);
  std::istringstream words(line.value_or(""));
  std::string name, node, port, digits;
  words >> name >> node >> port >> digits;
  const auto secret = JobSecret::FromHex(digits);
  if (name != kProxy || !secret) {
    return PmiError{"mpiexec --proxy is for mpiexec's own use: it expects an invitation on standard input"};
  }
  std::vector<std::string> addresses;
  std::string tried;
  for (std::string address; words >> address; tried += " " + address) addresses.push_back(address);
  const auto deadline = Clock::now() + kProxyPatience;
  milliseconds pause = kFirstRetry;
  for (bool again = true; again && Clock::now() < deadline; pause = std::min(pause * 2, kLongestRetry)) {
    again = false;
    for (const std::string& address : addresses) {
      const int fd = Dial(address, port);
      if (fd < 0) continue;
      bool closed;
      if (GreetMpiexec(fd, *secret, node, &closed)) {
        ConfigureTcp(fd);
        return Invited{std::make_unique<Connection>(fd), *secret};
      }
      again |= closed;  // for want of room, perhaps
      close(fd);
    }
    if (again) poll(nullptr, 0, static_cast<int>(pause.count()));
  }
  return PmiError{"cannot connect to mpiexec at port " + port + " of" + tried +
                  "; is a firewall between, or is -iface needed?"};
}

JobSecret SecretOfJob(const JobSecret& secret, int job) {
  if (job == 0) return secret;
  const std::string number = std::to_string(job);
  return secret.Derive("weft-job", {reinterpret_cast<const uint8_t*>(number.data()), number.size()});
}

std::string OwnAddress(int fd) {
  const std::string host = transport::SocketAddress::Local(fd).host();
  // A dual-stack listener shows IPv4 peers as ::ffff:a.b.c.d.
  static constexpr std::string_view kMapped = "::ffff:";
  const bool mapped = host.starts_with(kMapped) && host.find('.') != host.npos;
  return mapped ? host.substr(kMapped.size()) : host;
}

}  // namespace weft::pmi
