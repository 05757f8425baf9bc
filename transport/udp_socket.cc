#include "transport/udp_socket.h"

#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/dma_scope.h"
#include "base/high_descriptor.h"
#include "base/uncancelled.h"

namespace weft::transport {
namespace {

constexpr size_t kBatch = 32;                   // messages of one system call
constexpr size_t kMostPieces = 128;             // of the trains of one system call
constexpr size_t kLongestTrain = 64;            // datagrams (Linux's UDP_MAX_SEGMENTS, before 6.9)
constexpr size_t kMostTrainBytes = 65507 - 20;  // of IPv4 and IPv6
constexpr int kBufferBytes = 8 * 1024 * 1024;   // asked for; an ordinary user gets up to net.core.rmem_max
constexpr size_t kControlBytes =
    CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(in_pktinfo)) + CMSG_SPACE(sizeof(int));

// The IPv6 form of `address`: IPv4 as IPv4-mapped.
sockaddr_in6 ToV6(const SocketAddress& address) {
  sockaddr_in6 in6{};
  if (address.family() == AF_INET6) return *reinterpret_cast<const sockaddr_in6*>(address.get());
  const auto* in = reinterpret_cast<const sockaddr_in*>(address.get());
  in6.sin6_family = AF_INET6;
  in6.sin6_port = in->sin_port;
  in6.sin6_addr.s6_addr[10] = in6.sin6_addr.s6_addr[11] = 0xff;
  std::memcpy(&in6.sin6_addr.s6_addr[12], &in->sin_addr, 4);
  return in6;
}

SocketAddress FromV4(const void* address, in_port_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = port;
  std::memcpy(&in.sin_addr, address, 4);
  return SocketAddress::From(reinterpret_cast<const sockaddr*>(&in), sizeof in).value_or(SocketAddress());
}

SocketAddress FromV6(const sockaddr_in6& in6) {
  if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) return FromV4(&in6.sin6_addr.s6_addr[12], in6.sin6_port);
  return SocketAddress::From(reinterpret_cast<const sockaddr*>(&in6), sizeof in6).value_or(SocketAddress());
}

void SetBuffer(int fd, int force, int ordinary) {
  const int bytes = kBufferBytes;
  if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof bytes) != 0) {
    setsockopt(fd, SOL_SOCKET, ordinary, &bytes, sizeof bytes);
  }
}

bool Set(int fd, int level, int name, int value) { return setsockopt(fd, level, name, &value, sizeof value) == 0; }

int Join(int fd, const SocketAddress& group, uint32_t interface) {
  if (group.family() == AF_INET) {
    ip_mreqn request{};
    request.imr_multiaddr = reinterpret_cast<const sockaddr_in*>(group.get())->sin_addr;
    request.imr_ifindex = static_cast<int>(interface);
    return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request) == 0 ? 0 : errno;
  }
  ipv6_mreq request{};
  request.ipv6mr_multiaddr = reinterpret_cast<const sockaddr_in6*>(group.get())->sin6_addr;
  request.ipv6mr_interface = interface;
  return setsockopt(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &request, sizeof request) == 0 ? 0 : errno;
}

// Where the datagram is to come from, as a control message of `header`, which has kControlBytes of room.
void ChooseSource(const OutgoingDatagram& datagram, int family, msghdr& header) {
  if (datagram.from.family() == 0 && datagram.interface == 0) {
    header.msg_control = nullptr;
    header.msg_controllen = 0;
    return;
  }
  cmsghdr* message = CMSG_FIRSTHDR(&header);
  if (family == AF_INET) {
    in_pktinfo info{};
    info.ipi_ifindex = static_cast<int>(datagram.interface);
    if (datagram.from.family() == AF_INET) {
      info.ipi_spec_dst = reinterpret_cast<const sockaddr_in*>(datagram.from.get())->sin_addr;
    }
    message->cmsg_level = IPPROTO_IP;
    message->cmsg_type = IP_PKTINFO;
    message->cmsg_len = CMSG_LEN(sizeof info);
    std::memcpy(CMSG_DATA(message), &info, sizeof info);
    header.msg_controllen = CMSG_SPACE(sizeof info);
  } else {
    in6_pktinfo info{};
    info.ipi6_ifindex = datagram.interface;
    if (datagram.from.family() != 0) {
      info.ipi6_addr = ToV6(datagram.from).sin6_addr;
    } else if (datagram.to.family() == AF_INET) {
      info.ipi6_addr.s6_addr[10] = info.ipi6_addr.s6_addr[11] = 0xff;  // any, of IPv4
    }
    message->cmsg_level = IPPROTO_IPV6;
    message->cmsg_type = IPV6_PKTINFO;
    message->cmsg_len = CMSG_LEN(sizeof info);
    std::memcpy(CMSG_DATA(message), &info, sizeof info);
    header.msg_controllen = CMSG_SPACE(sizeof info);
  }
}

// The kernel is to make datagrams of `each` bytes of it: a control message behind those of `header`.
void ChooseLength(uint16_t each, msghdr& header, uint8_t* control) {
  auto* const message = reinterpret_cast<cmsghdr*>(control + header.msg_controllen);
  message->cmsg_level = IPPROTO_UDP;
  message->cmsg_type = UDP_SEGMENT;
  message->cmsg_len = CMSG_LEN(sizeof each);
  std::memcpy(CMSG_DATA(message), &each, sizeof each);
  header.msg_control = control;
  header.msg_controllen += CMSG_SPACE(sizeof each);
}

// What the kernel says of a train whose datagrams, or whose way, cannot be one: it would fragment them, or the
// interface does not add checksums.
bool IsAboutTrain(int error) { return error == EINVAL || error == EMSGSIZE || error == EIO || error == EOPNOTSUPP; }

void ReadControl(msghdr& header, IncomingDatagram& datagram) {
  datagram.to = {};
  datagram.interface = 0;
  datagram.each = 0;
  for (cmsghdr* message = CMSG_FIRSTHDR(&header); message != nullptr; message = CMSG_NXTHDR(&header, message)) {
    if (message->cmsg_level == IPPROTO_IP && message->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(message), sizeof info);
      datagram.to = FromV4(&info.ipi_addr, 0);
      datagram.interface = static_cast<uint32_t>(info.ipi_ifindex);
    } else if (message->cmsg_level == IPPROTO_IPV6 && message->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(message), sizeof info);
      sockaddr_in6 in6{};
      in6.sin6_family = AF_INET6;
      in6.sin6_addr = info.ipi6_addr;
      if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr)) in6.sin6_scope_id = info.ipi6_ifindex;
      datagram.to = FromV6(in6);
      datagram.interface = info.ipi6_ifindex;
    } else if (message->cmsg_level == IPPROTO_UDP && message->cmsg_type == UDP_GRO) {
      int each;
      std::memcpy(&each, CMSG_DATA(message), sizeof each);
      if (each > 0) datagram.each = static_cast<size_t>(each);
    }
  }
}

}  // namespace

Result<std::unique_ptr<DatagramSocket>, int> UdpSocket::Open(const SocketAddress& local,
                                                             const DatagramOptions& options) {
  if (local.length() == 0) return EAFNOSUPPORT;
  const int type = options.protocol != 0 ? SOCK_RAW : SOCK_DGRAM,
            protocol = options.protocol != 0 ? options.protocol : IPPROTO_UDP;
  const int fd = LeaveRoomForSelect(socket(local.family(), type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol));
  if (fd < 0) return errno;
  std::unique_ptr<UdpSocket> opened(new UdpSocket(fd, local.family()));
  if (int error = opened->Prepare(local, options)) return error;
  return std::unique_ptr<DatagramSocket>(std::move(opened));
}

int UdpSocket::Prepare(const SocketAddress& local, const DatagramOptions& options) {
  if (family_ == AF_INET6 && options.protocol == 0 && !Set(fd_, IPPROTO_IPV6, IPV6_V6ONLY, options.only_v6))
    return errno;
  if (options.shared && !Set(fd_, SOL_SOCKET, SO_REUSEADDR, 1)) return errno;
  if (family_ == AF_INET6 ? !Set(fd_, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) : !Set(fd_, IPPROTO_IP, IP_PKTINFO, 1))
    return errno;
  // Only the groups that this socket joined, not what others on this host did.
  Set(fd_, IPPROTO_IP, IP_MULTICAST_ALL, 0);
  if (family_ == AF_INET6) Set(fd_, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
  SetBuffer(fd_, SO_RCVBUFFORCE, SO_RCVBUF);
  SetBuffer(fd_, SO_SNDBUFFORCE, SO_SNDBUF);
  // UDP_SEGMENT 0 changes nothing, where it is known.
  trains_ = options.trains && Set(fd_, IPPROTO_UDP, UDP_SEGMENT, 0);
  if (options.trains) Set(fd_, IPPROTO_UDP, UDP_GRO, 1);
  if (options.refusals) {
    refusals_ = Set(fd_, IPPROTO_IP, IP_RECVERR, 1);
    if (family_ == AF_INET6) refusals_ = Set(fd_, IPPROTO_IPV6, IPV6_RECVERR, 1);
  }
  if (bind(fd_, local.get(), local.length()) != 0) return errno;
  if (options.peer.family() != 0 && connect(fd_, options.peer.get(), options.peer.length()) != 0) return errno;
  return options.group.family() != 0 ? Join(fd_, options.group, options.interface) : 0;
}

UdpSocket::~UdpSocket() { uncancelled::Close(fd_); }

int UdpSocket::TakeError() {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

bool UdpSocket::TakeRefusal(iovec room, RefusedDatagram* refused) {
  may_have_refusal_.store(false, std::memory_order_relaxed);
  while (refusals_) {
    sockaddr_in6 name{};
    alignas(cmsghdr) uint8_t control[kControlBytes + CMSG_SPACE(sizeof(sock_extended_err) + sizeof(sockaddr_in6))];
    msghdr header{};
    header.msg_name = &name;
    header.msg_namelen = sizeof name;
    header.msg_iov = &room;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t length = uncancelled::ReceiveMessage(fd_, &header, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return false;
    bool is_refusal = false;
    for (cmsghdr* message = CMSG_FIRSTHDR(&header); message != nullptr; message = CMSG_NXTHDR(&header, message)) {
      const bool v4 = message->cmsg_level == IPPROTO_IP && message->cmsg_type == IP_RECVERR;
      const bool v6 = message->cmsg_level == IPPROTO_IPV6 && message->cmsg_type == IPV6_RECVERR;
      if (!v4 && !v6) continue;
      sock_extended_err error;
      std::memcpy(&error, CMSG_DATA(message), sizeof error);
      is_refusal = error.ee_errno == ECONNREFUSED;
    }
    if (!is_refusal) continue;
    IncomingDatagram of_it;
    ReadControl(header, of_it);
    *refused = {.to = name.sin6_family == AF_INET6
                          ? FromV6(name)
                          : SocketAddress::From(reinterpret_cast<const sockaddr*>(&name), header.msg_namelen).value_or(SocketAddress()),
                .from = of_it.to,
                .length = static_cast<size_t>(length)};
    may_have_refusal_.store(true, std::memory_order_relaxed);
    return true;
  }
  return false;
}

// The next call of a socket says what became of an earlier datagram, and does nothing else: once more.
bool UdpSocket::IsPending(int error, bool* again) {
  if (!refusals_ || error == EAGAIN || error == EINTR || std::exchange(*again, true)) return false;
  may_have_refusal_.store(true, std::memory_order_relaxed);
  return true;
}

// How many from the first on go as one.
size_t UdpSocket::TrainAt(std::span<const OutgoingDatagram> datagrams) const {
  if (!trains_.load(std::memory_order_relaxed)) return 1;
  const OutgoingDatagram& first = datagrams[0];
  const size_t each = first.pieces.size() == 1 ? first.pieces[0].iov_len : 0;
  size_t count = 1, bytes = each;
  while (each > 0 && count < std::min(datagrams.size(), kLongestTrain)) {
    const OutgoingDatagram& next = datagrams[count];
    const size_t length = next.pieces.size() == 1 ? next.pieces[0].iov_len : 0;
    if (length == 0 || length > each || bytes + length > kMostTrainBytes || !(next.to == first.to) ||
        !(next.from == first.from) || next.interface != first.interface) {
      break;
    }
    ++count;
    bytes += length;
    if (length < each) break;
  }
  return count;
}

size_t UdpSocket::Send(std::span<const OutgoingDatagram> datagrams, int* error) {
  size_t sent = 0;
  size_t alone = 0;  // up to which they go one by one
  bool again = false;
  while (sent < datagrams.size()) {
    mmsghdr messages[kBatch];
    sockaddr_in6 names[kBatch];
    size_t lengths[kBatch];  // of the trains
    iovec pieces[kMostPieces];
    alignas(cmsghdr) uint8_t control[kBatch][kControlBytes];
    size_t count = 0, used = 0;
    for (size_t next = sent; count < kBatch && next < datagrams.size(); next += lengths[count++]) {
      const OutgoingDatagram& datagram = datagrams[next];
      lengths[count] = next < alone ? 1 : TrainAt(datagrams.subspan(next));
      if (used + lengths[count] > kMostPieces) break;
      msghdr& header = messages[count].msg_hdr;
      header = {};
      if (family_ == AF_INET6) {
        names[count] = ToV6(datagram.to);
        header.msg_namelen = sizeof(sockaddr_in6);
        header.msg_name = &names[count];
      } else {
        header.msg_namelen = datagram.to.length();
        header.msg_name = const_cast<sockaddr*>(datagram.to.get());
      }
      header.msg_iov = const_cast<iovec*>(datagram.pieces.data());
      header.msg_iovlen = datagram.pieces.size();
      header.msg_control = control[count];
      header.msg_controllen = kControlBytes;
      ChooseSource(datagram, family_, header);
      if (lengths[count] == 1) continue;
      header.msg_iov = &pieces[used];
      header.msg_iovlen = lengths[count];
      for (size_t i = 0; i < lengths[count]; ++i) pieces[used++] = datagrams[next + i].pieces[0];
      ChooseLength(static_cast<uint16_t>(pieces[used - lengths[count]].iov_len), header, control[count]);
    }
    int done;
    {
      const DmaScope dma;
      done = uncancelled::SendMessages(fd_, messages, static_cast<unsigned>(count), MSG_NOSIGNAL);
    }
    if (done < 0) {
      if (errno == EINTR) continue;
      if (lengths[0] > 1 && IsAboutTrain(errno)) {
        alone = sent + lengths[0];
        continue;
      }
      if (IsPending(errno, &again)) continue;
      *error = errno;
      return sent;
    }
    for (int i = 0; i < done; ++i) sent += lengths[i];
    again = false;
  }
  return sent;
}

size_t UdpSocket::Receive(std::span<IncomingDatagram> into) {
  const size_t count = std::min(kBatch, into.size());
  mmsghdr messages[kBatch];
  sockaddr_in6 names[kBatch];
  alignas(cmsghdr) uint8_t control[kBatch][kControlBytes];
  for (size_t i = 0; i < count; ++i) {
    msghdr& header = messages[i].msg_hdr;
    header = {};
    header.msg_name = &names[i];
    header.msg_namelen = sizeof names[i];
    header.msg_iov = &into[i].room;
    header.msg_iovlen = 1;
    header.msg_control = control[i];
    header.msg_controllen = kControlBytes;
  }
  int done;
  bool again = false;
  do {
    done = uncancelled::ReceiveMessages(fd_, messages, static_cast<unsigned>(count), MSG_DONTWAIT);
  } while (done < 0 && (errno == EINTR || IsPending(errno, &again)));
  for (int i = 0; i < done; ++i) {
    msghdr& header = messages[i].msg_hdr;
    IncomingDatagram& datagram = into[static_cast<size_t>(i)];
    datagram.length = messages[i].msg_len;
    datagram.cut_off = (header.msg_flags & MSG_TRUNC) != 0;
    const auto* name = reinterpret_cast<const sockaddr*>(&names[i]);
    datagram.from = name->sa_family == AF_INET6 && header.msg_namelen >= sizeof(sockaddr_in6)
                        ? FromV6(names[i])
                        : SocketAddress::From(name, header.msg_namelen).value_or(SocketAddress());
    ReadControl(header, datagram);
  }
  return done < 0 ? 0 : static_cast<size_t>(done);
}

}  // namespace weft::transport
