#include <cerrno>
#include <memory>

#include "verbs/export.h"
#include "verbs/objects.h"
#include "verbs/xrc.h"

// Shared receive queues, of types basic and XRC.
namespace weft::verbs {
namespace {

int PostSrqReceive(ibv_srq* srq, ibv_recv_wr* list, ibv_recv_wr** bad) { return FromPublic(srq)->queue->Post(list, bad); }

int GetSrqNumber(ibv_srq* srq, uint32_t* number) {
  *number = FromPublic(srq)->queue->number();
  return 0;
}

// `xrcd`, `cq`: both, for type XRC, or none.
ibv_srq* CreateSrq(ibv_pd* pd, void* srq_context, const ibv_srq_attr& size, Xrcd* xrcd, ibv_cq* cq) {
  if (!Known(FromPublic(pd), cq != nullptr ? FromPublic(cq) : nullptr)) return Fail<ibv_srq>(ENOENT);
  if (const int error = Fault(faults::Call::kCreateSrq, pd->context)) return Fail<ibv_srq>(error);
  if (size.max_wr < 1 || size.max_wr > sim::kMaxSrqWr || size.max_sge > sim::kMaxSge) return Fail<ibv_srq>(EINVAL);
  if (!FromPublic(pd->context->device)->srqs.Take()) return Fail<ibv_srq>(ENOMEM);
  Context* context = FromPublic(pd->context);
  auto* srq = new Srq{};
  srq->srq_context = srq_context;
  srq->pd = pd;
  Name(*srq, pd->context);
  pthread_mutex_init(&srq->mutex, nullptr);
  pthread_cond_init(&srq->cond, nullptr);
  FromPublic(pd)->domain->users.fetch_add(1);
  srq->queue = context->rnic->CreateSharedReceiveQueue(FromPublic(pd)->domain, size.max_wr, size.max_sge, context->async,
                                                       static_cast<ibv_srq*>(srq), cq != nullptr ? FromPublic(cq)->queue : nullptr);
  if (xrcd != nullptr) {
    srq->xrcd = xrcd;
    srq->cq = cq;
    xrcd->users.fetch_add(1);
    srq->queue->completions()->users.fetch_add(1);
    xrcd->shared->domain->Add(srq->queue);
  }
  return srq;
}

void LeaveXrcDomain(Srq& srq) {
  srq.xrcd->shared->domain->Remove(srq.queue->number());
  srq.queue->Close();
  srq.queue->completions()->users.fetch_sub(1);
  srq.xrcd->users.fetch_sub(1);
}

// ibv_create_srq_ex of the public header comes here with what ibv_create_srq cannot have: XRC and tag matching, or a mistake.
ibv_srq* CreateSrqEx(ibv_context* context, ibv_srq_init_attr_ex* attributes) {
  constexpr uint32_t kXrc = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  if (attributes->comp_mask & ~kXrc) return Fail<ibv_srq>(EOPNOTSUPP);
  if ((attributes->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || attributes->srq_type == IBV_SRQT_BASIC) {
    return Fail<ibv_srq>(EINVAL);  // no protection domain, or what only XRC has
  }
  if (attributes->srq_type != IBV_SRQT_XRC || FromPublic(context)->rnic->settings().persona != Persona::kRoce) {
    return Fail<ibv_srq>(EOPNOTSUPP);
  }
  if (attributes->comp_mask != kXrc) return Fail<ibv_srq>(EINVAL);
  const auto of_another = [context](const auto* object) { return object == nullptr || object->context != context; };
  if (of_another(attributes->pd) || of_another(attributes->xrcd) || of_another(attributes->cq)) return Fail<ibv_srq>(EINVAL);
  return CreateSrq(attributes->pd, attributes->srq_context, attributes->attr, FromPublic(attributes->xrcd), attributes->cq);
}

}  // namespace

void FillSharedReceiveOperations(verbs_context* vctx) {
  vctx->context.ops.post_srq_recv = Reported<PostSrqReceive>;
  vctx->create_srq_ex = CreateSrqEx;
  vctx->get_srq_num = GetSrqNumber;
}

}  // namespace weft::verbs

using weft::verbs::FromPublic;
using weft::verbs::Report;
using weft::verbs::Srq;

WEFT_VERBS_API ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  return weft::verbs::CreateSrq(pd, attributes->srq_context, attributes->attr, nullptr, nullptr);
}

WEFT_VERBS_API int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  if (!weft::verbs::Known(FromPublic(srq))) return Report(ENOENT);
  return Report(FromPublic(srq)->queue->Modify(*attributes, mask));
}

WEFT_VERBS_API int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
  if (!weft::verbs::Known(FromPublic(srq))) return Report(ENOENT);
  *attributes = FromPublic(srq)->queue->Query();
  return 0;
}

WEFT_VERBS_API int ibv_destroy_srq(ibv_srq* public_srq) {
  Srq* srq = FromPublic(public_srq);
  if (!weft::verbs::Known(srq)) return Report(ENOENT);
  if (srq->queue->users.load() != 0) return Report(EBUSY);
  if (srq->xrcd != nullptr) weft::verbs::LeaveXrcDomain(*srq);
  FromPublic(srq->context)->async->Forget(public_srq);
  // No event is delivered from here on; those that were are acknowledged first (ibv_get_async_event(3)).
  pthread_mutex_lock(&srq->mutex);
  while (srq->events_completed != srq->async_events_delivered.load()) pthread_cond_wait(&srq->cond, &srq->mutex);
  pthread_mutex_unlock(&srq->mutex);
  FromPublic(srq->pd)->domain->users.fetch_sub(1);
  FromPublic(srq->context->device)->srqs.Return();
  pthread_cond_destroy(&srq->cond);
  pthread_mutex_destroy(&srq->mutex);
  delete srq;
  return 0;
}
