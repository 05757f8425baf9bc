// rdma_getaddrinfo: getaddrinfo(3) with the outcome on the side, source or destination, that rdma_cm wants it.
#include <netdb.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cm/export.h"
#include "cm/identifier.h"

namespace weft::cm {
namespace {

constexpr int kAddressFamilyIb = 27;  // AF_IB

// Flags of rdma-core 60: InfiniBand's subnet administration is asked, or the names of IP, which is the default.
constexpr int kAskSubnet = 0x10;
constexpr int kAskNames = 0x20;

struct FreeInfo {
  void operator()(rdma_addrinfo* info) const { rdma_freeaddrinfo(info); }
};
using Info = std::unique_ptr<rdma_addrinfo, FreeInfo>;

template <typename T>
bool Copy(const void* from, size_t length, T** into) {
  if (length == 0) return true;
  *into = static_cast<T*>(malloc(length));
  if (*into == nullptr) return false;
  memcpy(*into, from, length);
  return true;
}

bool CopyAddress(const sockaddr* from, socklen_t length, sockaddr** into, socklen_t* into_length) {
  if (from == nullptr || length == 0) return true;
  if (!Copy(from, length, into)) return false;
  *into_length = length;
  return true;
}

addrinfo ToSystem(const rdma_addrinfo& hints) {
  addrinfo system{};
  if ((hints.ai_flags & RAI_PASSIVE) != 0) system.ai_flags |= AI_PASSIVE;
  if ((hints.ai_flags & RAI_NUMERICHOST) != 0) system.ai_flags |= AI_NUMERICHOST;
  system.ai_family = hints.ai_family;
  if (hints.ai_qp_type != 0) system.ai_socktype = hints.ai_qp_type == IBV_QPT_UD ? SOCK_DGRAM : SOCK_STREAM;
  if (hints.ai_port_space == RDMA_PS_TCP) system.ai_protocol = IPPROTO_TCP;
  if (hints.ai_port_space == RDMA_PS_UDP || hints.ai_port_space == RDMA_PS_IPOIB) system.ai_protocol = IPPROTO_UDP;
  return system;
}

// 0 or an EAI_ code.
int CheckHints(const rdma_addrinfo& hints) {
  constexpr int kKnown = RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY | kAskNames;
  if ((hints.ai_flags & ~kKnown) != 0) return EAI_BADFLAGS;
  if (hints.ai_family == kAddressFamilyIb) return EAI_FAMILY;
  const bool datagram = hints.ai_port_space == RDMA_PS_UDP || hints.ai_port_space == RDMA_PS_IPOIB;
  if (hints.ai_qp_type == IBV_QPT_UD && hints.ai_port_space == RDMA_PS_TCP) return EAI_SOCKTYPE;
  if (hints.ai_qp_type != 0 && hints.ai_qp_type != IBV_QPT_UD && datagram) return EAI_SOCKTYPE;
  return 0;
}

// One result. `found` is nullptr: from the hints alone. nullptr: no memory.
Info Make(const rdma_addrinfo& hints, const addrinfo* found) {
  Info info(static_cast<rdma_addrinfo*>(calloc(1, sizeof(rdma_addrinfo))));
  if (info == nullptr) return nullptr;
  const bool passive = (hints.ai_flags & RAI_PASSIVE) != 0;
  const bool datagram = found != nullptr && found->ai_socktype == SOCK_DGRAM;
  info->ai_flags = hints.ai_flags;
  info->ai_family = found != nullptr ? found->ai_family : hints.ai_family;
  info->ai_qp_type = hints.ai_qp_type != 0 ? hints.ai_qp_type : datagram ? IBV_QPT_UD : IBV_QPT_RC;
  info->ai_port_space = hints.ai_port_space != 0         ? hints.ai_port_space
                        : info->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP
                                                         : RDMA_PS_TCP;
  const bool complete =
      found == nullptr ? CopyAddress(hints.ai_dst_addr, hints.ai_dst_len, &info->ai_dst_addr, &info->ai_dst_len)
      : passive        ? CopyAddress(found->ai_addr, found->ai_addrlen, &info->ai_src_addr, &info->ai_src_len)
                       : CopyAddress(found->ai_addr, found->ai_addrlen, &info->ai_dst_addr, &info->ai_dst_len);
  if (!complete) return nullptr;
  const bool same_family =
      hints.ai_src_addr != nullptr && (info->ai_family == AF_UNSPEC || hints.ai_src_addr->sa_family == info->ai_family);
  if (info->ai_src_len == 0 && same_family &&
      !CopyAddress(hints.ai_src_addr, hints.ai_src_len, &info->ai_src_addr, &info->ai_src_len)) {
    return nullptr;
  }
  if (found != nullptr && found->ai_canonname != nullptr) {
    (passive ? info->ai_src_canonname : info->ai_dst_canonname) = strdup(found->ai_canonname);
  }
  if (hints.ai_connect != nullptr) {
    if (!Copy(hints.ai_connect, hints.ai_connect_len, &info->ai_connect)) return nullptr;
    info->ai_connect_len = hints.ai_connect_len;
  }
  return info;
}

// The status of an event: a negative errno for what rdma_getaddrinfo returned.
int StatusOfFailure(int failure) {
  switch (failure) {
    case EAI_BADFLAGS:  // or errno says more, as -1 is this number
      return errno != 0 ? -errno : -EINVAL;
    case EAI_SYSTEM:
      return -errno;
    case EAI_AGAIN:
      return -EAGAIN;
    case EAI_MEMORY:
      return -ENOMEM;
    case EAI_SOCKTYPE:
      return -EINVAL;
    case EAI_FAMILY:
      return -EAFNOSUPPORT;
    default:
      return -ENOENT;
  }
}

}  // namespace

int Identifier::ResolveAddressInfo(const char* node, const char* service, const rdma_addrinfo* hints) {
  if (node == nullptr && service == nullptr && hints == nullptr) return EINVAL;
  if (hints != nullptr && (hints->ai_flags & kAskSubnet) != 0) return EOPNOTSUPP;  // no subnet of InfiniBand here
  {
    std::lock_guard lock(mutex_);
    if (resolving_info_) return EBUSY;
    resolving_info_ = true;
  }
  rdma_addrinfo* found = nullptr;
  errno = 0;
  const int failure = rdma_getaddrinfo(node, service, hints, &found);
  const int status = failure == 0 ? 0 : StatusOfFailure(failure);
  {
    std::lock_guard lock(mutex_);
    resolving_info_ = failure == 0;
    resolved_info_.reset(found);
  }
  Post(failure == 0 ? kAddressInfoResolved : kAddressInfoError, status);
  return Complete();
}

int Identifier::TakeAddressInfo(rdma_addrinfo** info) {
  std::lock_guard lock(mutex_);
  if (resolved_info_ == nullptr) return ENOENT;
  *info = resolved_info_.release();
  resolving_info_ = false;
  return 0;
}

}  // namespace weft::cm

using weft::cm::Identifier;

// rdma-core 60. As there, names are looked up within the call; the outcome is an event.
WEFT_CM_EXPORT int rdma_resolve_addrinfo(rdma_cm_id* id, const char* node, const char* service, const rdma_addrinfo* hints) {
  if (id == nullptr) return weft::cm::Return(EINVAL);
  return weft::cm::Return(Identifier::From(id)->ResolveAddressInfo(node, service, hints));
}

WEFT_CM_EXPORT int rdma_query_addrinfo(rdma_cm_id* id, rdma_addrinfo** info) {
  if (id == nullptr || info == nullptr) return weft::cm::Return(EINVAL);
  return weft::cm::Return(Identifier::From(id)->TakeAddressInfo(info));
}

// 0, an EAI_ code of getaddrinfo(3), or -1 with errno, as the man page has it.
WEFT_CM_EXPORT int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints,
                                    rdma_addrinfo** res) {
  using namespace weft::cm;
  if (res == nullptr || (node == nullptr && service == nullptr && hints == nullptr)) return Return(EINVAL);
  static constexpr rdma_addrinfo kNoHints{};
  const rdma_addrinfo& wanted = hints != nullptr ? *hints : kNoHints;
  if (const int error = CheckHints(wanted); error != 0) return error;

  if (node == nullptr && service == nullptr) {
    Info info = Make(wanted, nullptr);
    if (info == nullptr) return Return(ENOMEM);
    *res = info.release();
    return 0;
  }
  addrinfo system = ToSystem(wanted);
  if (hints == nullptr) system.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(node, service, &system, &found); error != 0) return error;
  Info first;
  rdma_addrinfo* last = nullptr;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    if (each->ai_socktype == SOCK_RAW) continue;
    // With neither type nor port space asked for, the same address comes once as stream and once as datagram.
    if (system.ai_socktype == 0 && system.ai_protocol == 0 && each->ai_socktype != SOCK_STREAM) continue;
    Info next = Make(wanted, each);
    if (next == nullptr) {
      freeaddrinfo(found);
      return Return(ENOMEM);
    }
    rdma_addrinfo* const added = next.get();
    if (last == nullptr) {
      first = std::move(next);
    } else {
      last->ai_next = next.release();
    }
    last = added;
  }
  freeaddrinfo(found);
  if (first == nullptr) return EAI_NONAME;
  *res = first.release();
  return 0;
}

WEFT_CM_EXPORT void rdma_freeaddrinfo(rdma_addrinfo* res) {
  while (res != nullptr) {
    rdma_addrinfo* const next = res->ai_next;
    free(res->ai_connect);
    free(res->ai_route);
    free(res->ai_src_canonname);
    free(res->ai_dst_canonname);
    free(res->ai_src_addr);
    free(res->ai_dst_addr);
    free(res);
    res = next;
  }
}
