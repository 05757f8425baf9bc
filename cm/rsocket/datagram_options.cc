// Options of datagram rsockets: those of rsocket(7) that make sense here, and others of socket(7), ip(7) and ipv6(7) that are the UDP
// socket's.
#include <netinet/in.h>
#include <rdma/rsocket.h>

#include <cerrno>
#include <utility>

#include "cm/rsocket/datagram.h"
#include "cm/rsocket/limits.h"
#include "cm/rsocket/option_values.h"

namespace weft::rsocket {
namespace {

// What the UDP socket does, or says, for us.
bool IsUdps(int level, int name, bool get) {
  switch (level) {
    case SOL_SOCKET:
      if (get && (name == SO_TYPE || name == SO_DOMAIN || name == SO_PROTOCOL || name == SO_ACCEPTCONN)) return true;
      return name == SO_REUSEADDR || name == SO_REUSEPORT || name == SO_PRIORITY || name == SO_BROADCAST || name == SO_LINGER ||
             name == SO_KEEPALIVE || name == SO_OOBINLINE;
    case IPPROTO_IP:
      return name == IP_TOS || name == IP_TTL;
    case IPPROTO_IPV6:
      return name == IPV6_V6ONLY || name == IPV6_TCLASS || name == IPV6_UNICAST_HOPS;
    default:
      return false;
  }
}

}  // namespace

int Datagram::SetOption(int level, int name, const void* value, socklen_t length) {
  if (value == nullptr) return EFAULT;
  Lock lock(mutex_);
  if (closing_) return EBADF;
  if (IsUdps(level, name, /*get=*/false)) return setsockopt(udp_, level, name, value, length) == 0 ? 0 : errno;
  if (level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO)) {
    return LoadTimeout(value, length, name == SO_RCVTIMEO ? &receive_timeout_ : &send_timeout_);
  }
  int number = 0;
  if (!LoadOption(value, length, &number)) return EINVAL;
  // Of links that are made from here on.
  const auto size = [number](uint32_t* into, uint32_t least, uint32_t most) { return LoadSize(number, least, most, into); };
  if (level == SOL_SOCKET && (name == SO_RCVBUF || name == SO_SNDBUF)) {
    uint32_t* const bytes = name == SO_RCVBUF ? &sizes_.receive_bytes : &sizes_.send_bytes;
    if (const int error = size(bytes, kLeastBuffer, kMostBuffer)) return error;
    return setsockopt(udp_, level, name, value, length) == 0 ? 0 : errno;
  }
  if (level != SOL_RDMA) return ENOPROTOOPT;
  if (!links_.empty()) return EINVAL;
  switch (name) {
    case RDMA_SQSIZE:
      return size(&sizes_.send_queue, kLeastQueue, kMostQueue);
    case RDMA_RQSIZE:
      return size(&sizes_.receive_queue, kLeastQueue, kMostQueue);
    case RDMA_INLINE:
      return size(&sizes_.inline_bytes, 0, kMostInline);
    default:
      return ENOPROTOOPT;
  }
}

int Datagram::GetOption(int level, int name, void* value, socklen_t* length) {
  if (value == nullptr || length == nullptr) return EFAULT;
  Lock lock(mutex_);
  if (closing_) return EBADF;
  if (IsUdps(level, name, /*get=*/true)) return getsockopt(udp_, level, name, value, length) == 0 ? 0 : errno;
  const auto number = [&](auto given) { return StoreOption(static_cast<int>(given), value, length); };
  if (level == SOL_SOCKET) {
    switch (name) {
      case SO_ERROR:
        Drive();
        return number(std::exchange(error_, 0));
      case SO_RCVBUF:
        return number(sizes_.receive_bytes);
      case SO_SNDBUF:
        return number(sizes_.send_bytes);
      case SO_RCVTIMEO:
        return StoreOption(receive_timeout_, value, length);
      case SO_SNDTIMEO:
        return StoreOption(send_timeout_, value, length);
      default:
        return ENOPROTOOPT;
    }
  }
  if (level != SOL_RDMA) return ENOPROTOOPT;
  switch (name) {
    case RDMA_SQSIZE:
      return number(sizes_.send_queue);
    case RDMA_RQSIZE:
      return number(sizes_.receive_queue);
    case RDMA_INLINE:
      return number(sizes_.inline_bytes);
    default:
      return ENOPROTOOPT;
  }
}

}  // namespace weft::rsocket
