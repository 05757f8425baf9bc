// Synchronous operation (an identifier without a channel waits for its own events), and rdma_create_ep on top of it.
#include <rdma/rdma_verbs.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "cm/export.h"
#include "cm/identifier.h"

namespace weft::cm {

void Identifier::ReleaseEvent() {
  if (event == nullptr) return;
  rdma_ack_cm_event(std::exchange(event, nullptr));
}

int Identifier::Complete() {
  if (!synchronous_) return 0;
  ReleaseEvent();
  const auto on = channel_;
  if (GetEvent(*on, &event) != 0) return errno;
  if (event->status == 0) return 0;
  // What is positive is no errno, but the peer's word: a reason to reject, or the status of a look-up.
  return NumberOf(*event) == RDMA_CM_EVENT_REJECTED || event->status > 0 ? ECONNREFUSED : -event->status;
}

int Identifier::CompleteDisconnect() {
  {
    std::lock_guard lock(mutex_);
    if (disconnect_reported_) return 0;  // no second event will come
  }
  return Complete();
}

int Identifier::TakeRequest(rdma_cm_id** request) {
  if (!synchronous_) return EINVAL;
  ReleaseEvent();
  rdma_cm_event* next = nullptr;
  const auto on = channel_;
  if (GetEvent(*on, &next) != 0) return errno;
  const std::shared_ptr<Identifier> taken = From(next->id)->shared_from_this();
  if (next->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
    event = next;
    return EINVAL;
  }
  // From here on the request answers for its event, so that the listener may be destroyed first.
  {
    std::lock_guard lock(taken->mutex_);
    ++taken->unacknowledged_;
  }
  static_cast<Event*>(next)->owner = taken;
  Acknowledge();
  taken->event = next;
  if (queue_pair_template_) {
    ibv_qp_init_attr attributes = *queue_pair_template_;
    if (rdma_create_qp(taken.get(), pd, &attributes) != 0) {
      const int error = errno;
      taken->Destroy();  // rejects it
      return error;
    }
  }
  *request = taken.get();
  return 0;
}

void Identifier::RememberConnectData(const void* data, size_t length) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  connect_data_.assign(bytes, bytes + length);
}

namespace {

constexpr int kResolveMilliseconds = 2000;

// Whether there are queue pairs of that type, in that port space: 0, EOPNOTSUPP or EINVAL.
int CheckType(const rdma_addrinfo& asked) {
  const bool datagrams = asked.ai_port_space == RDMA_PS_UDP;
  switch (asked.ai_qp_type) {
    case IBV_QPT_RC:
      return datagrams ? EINVAL : 0;
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
      return asked.ai_port_space == RDMA_PS_IB ? 0 : EINVAL;
    case IBV_QPT_UD:
      return datagrams ? 0 : EOPNOTSUPP;
    default:
      return EOPNOTSUPP;
  }
}

int Prepare(rdma_cm_id* id, const rdma_addrinfo& from, ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if ((from.ai_flags & RAI_PASSIVE) != 0) {
    if (rdma_bind_addr(id, from.ai_src_addr) != 0) return -1;
    if (pd != nullptr) id->pd = pd;
    if (attributes != nullptr) {
      ibv_qp_init_attr kept = *attributes;
      kept.qp_type = static_cast<ibv_qp_type>(from.ai_qp_type);
      Identifier::From(id)->RememberQueuePair(kept);
    }
    return 0;
  }
  if (rdma_resolve_addr(id, from.ai_src_addr, from.ai_dst_addr, kResolveMilliseconds) != 0) return -1;
  if (rdma_resolve_route(id, kResolveMilliseconds) != 0) return -1;
  if (attributes != nullptr) {
    attributes->qp_type = static_cast<ibv_qp_type>(from.ai_qp_type);
    if (rdma_create_qp(id, pd, attributes) != 0) return -1;
  }
  if (from.ai_connect_len != 0) Identifier::From(id)->RememberConnectData(from.ai_connect, from.ai_connect_len);
  return 0;
}

}  // namespace
}  // namespace weft::cm

using weft::cm::Identifier;
using weft::cm::Return;

WEFT_CM_EXPORT int rdma_get_request(rdma_cm_id* listen, rdma_cm_id** id) {
  if (listen == nullptr || id == nullptr) return Return(EINVAL);
  return Return(Identifier::From(listen)->TakeRequest(id));
}

WEFT_CM_EXPORT int rdma_create_ep(rdma_cm_id** id, rdma_addrinfo* res, ibv_pd* pd, ibv_qp_init_attr* qp_init_attr) {
  if (id == nullptr || res == nullptr) return Return(EINVAL);
  if (const int error = weft::cm::CheckType(*res); error != 0) return Return(error);
  rdma_cm_id* created = nullptr;
  const int made = Identifier::Make(nullptr, nullptr, static_cast<rdma_port_space>(res->ai_port_space),
                                    static_cast<ibv_qp_type>(res->ai_qp_type), &created);
  if (made != 0) return Return(made);
  if (weft::cm::Prepare(created, *res, pd, qp_init_attr) != 0) {
    const int error = errno;
    rdma_destroy_ep(created);
    return Return(error);
  }
  *id = created;
  return 0;
}

WEFT_CM_EXPORT void rdma_destroy_ep(rdma_cm_id* id) {
  if (id == nullptr) return;
  if (id->qp != nullptr) rdma_destroy_qp(id);
  if (id->srq != nullptr) rdma_destroy_srq(id);
  rdma_destroy_id(id);
}
