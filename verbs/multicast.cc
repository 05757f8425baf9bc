#include <cerrno>

#include "base/settings.h"
#include "sim/datagram/queue_pair.h"
#include "sim/device/gid.h"
#include "verbs/export.h"
#include "verbs/objects.h"

// Multicast groups of unreliable datagram queue pairs. The group's MLID is of InfiniBand's own link layer and says nothing here.
namespace weft::verbs {
namespace {

struct Group {
  transport::SocketAddress address;
  uint32_t interface = 0;
};

// EOPNOTSUPP: the iwarp persona; EINVAL: not a datagram queue pair, not a group.
int Find(ibv_qp* public_qp, const ibv_gid* gid, sim::DatagramQueuePair** qp, Group* group) {
  Qp* known = FromPublic(public_qp);
  if (FromPublic(public_qp->context)->rnic->settings().persona == Persona::kIwarp) return EOPNOTSUPP;
  if (known->engine->type() != IBV_QPT_UD || !sim::IsGroup(*gid)) return EINVAL;
  *qp = static_cast<sim::DatagramQueuePair*>(known->engine);
  group->interface = static_cast<uint32_t>(FromPublic(public_qp->context->device)->Info().interface_index);
  group->address = sim::AddressOf(*gid, group->interface);
  return 0;
}

}  // namespace
}  // namespace weft::verbs

WEFT_VERBS_API int ibv_attach_mcast(ibv_qp* public_qp, const ibv_gid* gid, uint16_t /*lid*/) {
  weft::sim::DatagramQueuePair* qp;
  weft::verbs::Group group;
  if (int error = weft::verbs::Find(public_qp, gid, &qp, &group)) return weft::verbs::Report(error);
  return weft::verbs::Report(qp->AttachGroup(group.address, group.interface));
}

WEFT_VERBS_API int ibv_detach_mcast(ibv_qp* public_qp, const ibv_gid* gid, uint16_t /*lid*/) {
  weft::sim::DatagramQueuePair* qp;
  weft::verbs::Group group;
  if (int error = weft::verbs::Find(public_qp, gid, &qp, &group)) return weft::verbs::Report(error);
  return weft::verbs::Report(qp->DetachGroup(group.address, group.interface));
}
