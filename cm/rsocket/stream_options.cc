// Options of stream rsockets: those of rsocket(7), and others of socket(7) and tcp(7) that programs set without needing them.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <cerrno>
#include <utility>

#include "cm/rsocket/option_values.h"
#include "cm/rsocket/stream.h"

namespace weft::rsocket {
namespace {

constexpr int kTcpMaxSegment = 65536;  // of one RDMA Write
constexpr int kLongestKeepAlive = 32767;

}  // namespace

int Stream::SetOption(int level, int name, const void* value, socklen_t length) {
  if (value == nullptr) return EFAULT;
  int number = 0;
  const bool has_number = LoadOption(value, length, &number);
  Lock lock(mutex_);
  if (closing_) return EBADF;
  const auto size = [&](uint32_t* into, uint32_t least, uint32_t most) {
    uint32_t ignored;  // a connection keeps what it was made with
    return has_number ? LoadSize(number, least, most, link_ == nullptr ? into : &ignored) : EINVAL;
  };
  const auto flag = [&](bool* into) {
    if (!has_number) return EINVAL;
    *into = number != 0;
    return 0;
  };
  const auto identifier_flag = [&](bool* into, int option) {
    if (!has_number) return EINVAL;
    int on = number != 0;
    if (id_ != nullptr && rdma_set_option(id_, RDMA_OPTION_ID, option, &on, sizeof on) != 0) return errno;
    *into = on != 0;
    return 0;
  };
  const auto keep_alive = [&](int* into, int most) {
    if (!has_number || number < 1 || number > most) return EINVAL;
    *into = number;
    return 0;
  };
  switch (level) {
    case SOL_SOCKET:
      switch (name) {
        case SO_RCVBUF:
          return size(&sizes_.receive_bytes, kLeastBuffer, kMostBuffer);
        case SO_SNDBUF:
          return size(&sizes_.send_bytes, kLeastBuffer, kMostBuffer);
        case SO_REUSEADDR:
          return identifier_flag(&reuse_address_, RDMA_OPTION_ID_REUSEADDR);
        case SO_KEEPALIVE:
          return flag(&keep_alive_);
        case SO_OOBINLINE:
          return flag(&inline_urgent_);
        case SO_LINGER:
          return LoadOption(value, length, &linger_) ? 0 : EINVAL;
        case SO_RCVTIMEO:
          return LoadTimeout(value, length, &receive_timeout_);
        case SO_SNDTIMEO:
          return LoadTimeout(value, length, &send_timeout_);
        case SO_PRIORITY:
        case SO_RCVLOWAT:
          return has_number ? 0 : EINVAL;  // no effect
        default:
          return ENOPROTOOPT;
      }
    case IPPROTO_TCP:
      switch (name) {
        case TCP_NODELAY:  // it never delays
          return flag(&no_delay_);
        case TCP_MAXSEG:
        case TCP_CORK:
        case TCP_QUICKACK:
        case TCP_DEFER_ACCEPT:
        case TCP_USER_TIMEOUT:
          return has_number ? 0 : EINVAL;  // no effect
        case TCP_KEEPIDLE:
          return keep_alive(&keep_alive_seconds_, kLongestKeepAlive);
        case TCP_KEEPINTVL:
          return keep_alive(&keep_alive_interval_, kLongestKeepAlive);
        case TCP_KEEPCNT:
          return keep_alive(&keep_alive_probes_, 127);
        default:
          return ENOPROTOOPT;
      }
    case IPPROTO_IP:
      return domain_ == AF_INET && (name == IP_TOS || name == IP_TTL) ? 0 : ENOPROTOOPT;
    case IPPROTO_IPV6:
      if (domain_ != AF_INET6) return ENOPROTOOPT;
      if (name == IPV6_V6ONLY) {
        if (state_ != State::kIdle) return EINVAL;
        return identifier_flag(&only_v6_, RDMA_OPTION_ID_AFONLY);
      }
      return name == IPV6_TCLASS ? 0 : ENOPROTOOPT;
    case SOL_RDMA:
      // Sizes are fixed when the connection is made.
      if (name == RDMA_ROUTE) return length > 0 && length % sizeof(ibv_path_data) == 0 ? 0 : EINVAL;  // iWARP has no path records
      if (link_ != nullptr) return EINVAL;
      switch (name) {
        case RDMA_SQSIZE:
          return size(&sizes_.send_queue, kLeastQueue, kMostQueue);
        case RDMA_RQSIZE:
          return size(&sizes_.receive_queue, kLeastQueue, kMostQueue);
        case RDMA_INLINE:
          return size(&sizes_.inline_bytes, 0, kMostInline);
        case RDMA_IOMAPSIZE: {
          const int error = size(&sizes_.map_entries, 0, kMostMapEntries);
          sizes_.map_entries = ScaledMapEntries(sizes_.map_entries);
          return error;
        }
        default:
          return ENOPROTOOPT;
      }
    default:
      return ENOPROTOOPT;
  }
}

int Stream::GetOption(int level, int name, void* value, socklen_t* length) {
  if (value == nullptr || length == nullptr) return EFAULT;
  Lock lock(mutex_);
  if (closing_) return EBADF;
  const auto number = [&](auto given) { return StoreOption(static_cast<int>(given), value, length); };
  switch (level) {
    case SOL_SOCKET:
      switch (name) {
        case SO_ERROR:
          Drive();
          return number(std::exchange(error_, 0));
        case SO_RCVBUF:
          return number(sizes_.receive_bytes);
        case SO_SNDBUF:
          return number(sizes_.send_bytes);
        case SO_REUSEADDR:
          return number(reuse_address_);
        case SO_KEEPALIVE:
          return number(keep_alive_);
        case SO_OOBINLINE:
          return number(inline_urgent_);
        case SO_LINGER:
          return StoreOption(linger_, value, length);
        case SO_RCVTIMEO:
          return StoreOption(receive_timeout_, value, length);
        case SO_SNDTIMEO:
          return StoreOption(send_timeout_, value, length);
        case SO_TYPE:
          return number(SOCK_STREAM);
        case SO_DOMAIN:
          return number(domain_);
        case SO_PROTOCOL:
          return number(IPPROTO_TCP);
        case SO_ACCEPTCONN:
          return number(state_ == State::kListening);
        default:
          return ENOPROTOOPT;
      }
    case IPPROTO_TCP:
      switch (name) {
        case TCP_NODELAY:
          return number(no_delay_);
        case TCP_MAXSEG:
          return number(kTcpMaxSegment);
        case TCP_KEEPIDLE:
          return number(keep_alive_seconds_);
        case TCP_KEEPINTVL:
          return number(keep_alive_interval_);
        case TCP_KEEPCNT:
          return number(keep_alive_probes_);
        default:
          return ENOPROTOOPT;
      }
    case IPPROTO_IPV6:
      return domain_ == AF_INET6 && name == IPV6_V6ONLY ? number(only_v6_) : ENOPROTOOPT;
    case SOL_RDMA:
      switch (name) {
        case RDMA_SQSIZE:
          return number(sizes_.send_queue);
        case RDMA_RQSIZE:
          return number(sizes_.receive_queue);
        case RDMA_INLINE:
          return number(sizes_.inline_bytes);
        case RDMA_IOMAPSIZE:
          return number(sizes_.map_entries);
        case RDMA_ROUTE:
          *length = 0;  // no path records
          return 0;
        default:
          return ENOPROTOOPT;
      }
    default:
      return ENOPROTOOPT;
  }
}

}  // namespace weft::rsocket
