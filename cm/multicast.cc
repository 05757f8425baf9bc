// Multicast groups: rdma_join_multicast, rdma_join_multicast_ex, rdma_leave_multicast. Nobody is to be asked, as on RoCE: the kernel's IP tells
// the network when the queue pair is attached.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>

#include "base/settings.h"
#include "cm/export.h"
#include "cm/identifier.h"

namespace weft::cm {

using transport::SocketAddress;

namespace {

constexpr uint32_t kGroupQueuePair = 0xffffff;

// nullopt: no IP group.
std::optional<SocketAddress> GroupFromProgram(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(address);
    if (!IN_MULTICAST(ntohl(in->sin_addr.s_addr))) return std::nullopt;
    return SocketAddress::From(address, sizeof *in);
  }
  if (address->sa_family == AF_INET6) {
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(address);
    if (!IN6_IS_ADDR_MULTICAST(&in6->sin6_addr)) return std::nullopt;
    return SocketAddress::From(address, sizeof *in6);
  }
  return std::nullopt;
}

}  // namespace

int Identifier::JoinGroup(const SocketAddress& group, bool receive, void* join_context) {
  if (!datagrams() || device_ == nullptr) return EINVAL;
  auto event = std::make_unique<Event>();
  event->event = RDMA_CM_EVENT_MULTICAST_JOIN;
  event->id = this;
  event->owner = shared_from_this();
  rdma_ud_param& ud = event->param.ud;
  ud.private_data = join_context;  // rdma_join_multicast(3)
  ud.ah_attr = AddressVector(ToGid(group));
  ud.qp_num = kGroupQueuePair;
  ud.qkey = RDMA_UDP_QKEY;
  std::lock_guard lock(mutex_);
  for (const Membership& known : groups_) {
    if (known.group.SameHost(group)) return EADDRINUSE;
  }
  event->join = ++last_join_;
  groups_.push_back({event->join, group, receive, false});
  channel_->Push(event);
  return 0;
}

int Identifier::AttachGroup(uint64_t join) {
  std::lock_guard lock(mutex_);
  const auto known = std::find_if(groups_.begin(), groups_.end(), [join](const auto& each) { return each.join == join; });
  if (known == groups_.end() || qp == nullptr || !known->receive) return 0;
  const ibv_gid gid = ToGid(known->group);
  const int error = ibv_attach_mcast(qp, &gid, 0);
  known->attached = error == 0;
  return error;
}

int Identifier::LeaveGroup(const SocketAddress& group) {
  std::lock_guard lock(mutex_);
  const auto known = std::find_if(groups_.begin(), groups_.end(), [&](const auto& each) { return each.group.SameHost(group); });
  if (known == groups_.end()) return EADDRNOTAVAIL;
  if (known->attached && qp != nullptr) {
    const ibv_gid gid = ToGid(group);
    ibv_detach_mcast(qp, &gid, 0);
  }
  groups_.erase(known);
  return 0;
}

void Identifier::LeaveAllGroups(bool forget) {
  std::lock_guard lock(mutex_);
  for (Membership& known : groups_) {
    if (!known.attached || qp == nullptr) continue;
    const ibv_gid gid = ToGid(known.group);
    ibv_detach_mcast(qp, &gid, 0);
    known.attached = false;
  }
  if (forget) groups_.clear();
}

}  // namespace weft::cm

using weft::cm::Identifier;
using weft::cm::Return;

namespace {

bool HasDatagrams() { return weft::ProcessSettings().persona == weft::Persona::kRoce; }

int Join(rdma_cm_id* id, const sockaddr* address, bool receive, void* context) {
  const auto group = weft::cm::GroupFromProgram(address);
  if (id == nullptr || address == nullptr) return Return(EINVAL);
  if (!HasDatagrams()) return Return(EOPNOTSUPP);
  if (!group) return Return(EINVAL);
  const auto keep = Identifier::Find(id);
  if (keep == nullptr) return Return(EINVAL);
  if (const int error = keep->JoinGroup(*group, receive, context); error != 0) return Return(error);
  return Return(keep->Complete());
}

}  // namespace

WEFT_CM_EXPORT int rdma_join_multicast(rdma_cm_id* id, sockaddr* addr, void* context) { return Join(id, addr, true, context); }

WEFT_CM_EXPORT int rdma_join_multicast_ex(rdma_cm_id* id, rdma_cm_join_mc_attr_ex* mc_join_attr, void* context) {
  constexpr uint32_t kNeeded = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  if (mc_join_attr == nullptr || mc_join_attr->comp_mask != kNeeded) return Return(EINVAL);
  const uint32_t flags = mc_join_attr->join_flags;
  if (flags != RDMA_MC_JOIN_FLAG_FULLMEMBER && flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER) return Return(EINVAL);
  return Join(id, mc_join_attr->addr, flags == RDMA_MC_JOIN_FLAG_FULLMEMBER, context);
}

WEFT_CM_EXPORT int rdma_leave_multicast(rdma_cm_id* id, sockaddr* addr) {
  const auto group = weft::cm::GroupFromProgram(addr);
  if (id == nullptr || addr == nullptr) return Return(EINVAL);
  if (!HasDatagrams()) return Return(EOPNOTSUPP);
  if (!group) return Return(EINVAL);
  return Return(Identifier::From(id)->LeaveGroup(*group));
}
