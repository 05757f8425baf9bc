#include "transport/local_address.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/high_descriptor.h"

namespace weft::transport {


namespace {

class Socket {
 public:
  Socket(int family, int type) : fd_(socket(family, type | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }
  int Detach() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

bool SetFlag(int fd, int level, int option, bool on) {
  const int value = on ? 1 : 0;
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

// The address that `fd` is bound to.
Result<SocketAddress, int> NameOf(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return errno;
  const auto name = SocketAddress::From(reinterpret_cast<sockaddr*>(&storage), length);
  if (!name) return EAFNOSUPPORT;
  return *name;
}

bool Overlap(const SocketAddress& a, bool a_only_v6, const SocketAddress& b, bool b_only_v6) {
  if (a.port() != b.port()) return false;
  if (a.family() == b.family()) return a.is_wildcard() || b.is_wildcard() || a.SameHost(b);
  const SocketAddress& v6 = a.family() == AF_INET6 ? a : b;
  const bool only_v6 = a.family() == AF_INET6 ? a_only_v6 : b_only_v6;
  if (v6.is_wildcard()) return !only_v6;
  return a.SameHost(b);
}

bool IsFreeAsUdp(const SocketAddress& address, bool only_v6) {
  const Socket probe(address.family(), SOCK_DGRAM);
  if (probe.fd() < 0) return true;  // whoever needs it will say so
  if (address.family() == AF_INET6 && !SetFlag(probe.fd(), IPPROTO_IPV6, IPV6_V6ONLY, only_v6)) return true;
  return bind(probe.fd(), address.get(), address.length()) == 0 || errno != EADDRINUSE;
}

}  // namespace

// The ports that this process holds. The kernel does not refuse a second bound socket while none listens.
class ReservedPorts {
 public:
  static ReservedPorts& Process() {
    static ReservedPorts* const ports = new ReservedPorts;
    return *ports;
  }
  bool Add(PortReservation* wanted) {
    std::lock_guard lock(mutex_);
    for (const PortReservation* held : held_) {
      if (held->options_.datagram != wanted->options_.datagram) continue;
      const bool shared = held->options_.reuse_address && wanted->options_.reuse_address;
      if (!shared && Overlap(held->address_, held->options_.only_v6, wanted->address_, wanted->options_.only_v6)) {
        return false;
      }
    }
    held_.push_back(wanted);
    return true;
  }
  void Remove(PortReservation* reservation) {
    std::lock_guard lock(mutex_);
    std::erase(held_, reservation);
  }

 private:
  std::mutex mutex_;  // guards held_
  std::vector<PortReservation*> held_;
};

Result<SocketAddress, int> SourceAddressFor(const SocketAddress& source, const SocketAddress& destination) {
  const bool given = source.family() != 0 && !source.is_wildcard();
  if (source.family() != 0 && source.family() != destination.family()) return EINVAL;
  Socket probe(destination.family(), SOCK_DGRAM);
  if (probe.fd() < 0) return errno;
  if (given) {
    SocketAddress host = source;
    host.set_port(0);
    if (bind(probe.fd(), host.get(), host.length()) != 0) return errno;
  }
  SocketAddress peer = destination;
  if (peer.port() == 0) peer.set_port(1);  // any; nothing is sent
  if (connect(probe.fd(), peer.get(), peer.length()) != 0) return errno;
  auto chosen = NameOf(probe.fd());
  if (chosen.ok()) chosen->set_port(source.port());
  return chosen;
}

int PortReservation::Reserve(const SocketAddress& address, const Options& options) {
  if (held()) return EINVAL;
  if (address.port() != 0) return TryToReserve(address, options, /*exclusively=*/false);
  // A port that the kernel chooses is nobody's, but when all have old connections in TIME-WAIT. Even then it may be one whose socket
  // somebody here has closed already: what was chosen in vain is kept from the kernel until another is found.
  std::vector<std::unique_ptr<PortReservation>> in_vain;
  constexpr int kMostTries = 64;
  int error = 0;
  for (int i = 0; i < kMostTries; ++i) {
    error = TryToReserve(address, options, /*exclusively=*/true);
    if (error == EADDRINUSE && fd_ < 0) error = TryToReserve(address, options, /*exclusively=*/false);
    if (error != EADDRINUSE || fd_ < 0) break;
    auto& kept = in_vain.emplace_back(std::make_unique<PortReservation>());
    kept->fd_ = std::exchange(fd_, -1);
  }
  return error;
}

// EADDRINUSE with fd_ open: the kernel chose a port that somebody here holds, or has as UDP's.
int PortReservation::TryToReserve(const SocketAddress& address, const Options& options, bool exclusively) {
  Socket holder(address.family(), options.datagram ? SOCK_DGRAM : SOCK_STREAM);
  if (holder.fd() < 0) return errno;
  // The engine's own socket shares the port with this one for a moment. With UDP anybody's could.
  const bool shared = options.reuse_address || (!options.datagram && !options.alone);
  if (!SetFlag(holder.fd(), SOL_SOCKET, SO_REUSEADDR, shared && !exclusively)) return errno;
  if (address.family() == AF_INET6 && !SetFlag(holder.fd(), IPPROTO_IPV6, IPV6_V6ONLY, options.only_v6)) return errno;
  if (bind(holder.fd(), address.get(), address.length()) != 0) return errno;
  if (exclusively && !SetFlag(holder.fd(), SOL_SOCKET, SO_REUSEADDR, shared)) return errno;
  const auto name = NameOf(holder.fd());
  if (!name.ok()) return name.error();
  address_ = *name;
  options_ = options;
  const bool fits = !options.udp_too || address.port() != 0 || IsFreeAsUdp(*name, options.only_v6);
  const bool added = fits && ReservedPorts::Process().Add(this);
  if (!added) address_ = SocketAddress();
  if (added || address.port() == 0) fd_ = LeaveRoomForSelect(holder.Detach());
  return added ? 0 : EADDRINUSE;
}

void PortReservation::CloseSocket() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void PortReservation::Release() {
  CloseSocket();
  if (!held()) return;
  ReservedPorts::Process().Remove(this);
  address_ = SocketAddress();
}

}  // namespace weft::transport
