#include <cerrno>
#include <memory>

#include "verbs/export.h"
#include "verbs/objects.h"

// Shared receive queues, of type basic.
namespace weft::verbs {
namespace {

int PostSrqReceive(ibv_srq* srq, ibv_recv_wr* list, ibv_recv_wr** bad) { return FromPublic(srq)->queue->Post(list, bad); }

int GetSrqNumber(ibv_srq* srq, uint32_t* number) {
  *number = FromPublic(srq)->queue->number();
  return 0;
}

// ibv_create_srq_ex of the public header comes here with what ibv_create_srq cannot have: XRC and tag matching, or a mistake.
ibv_srq* CreateSrqEx(ibv_context*, ibv_srq_init_attr_ex* attributes) {
  constexpr uint32_t kKnownMask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  if (attributes->comp_mask & ~kKnownMask) return Fail<ibv_srq>(EOPNOTSUPP);
  if ((attributes->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attributes->srq_type != IBV_SRQT_BASIC) {
    return Fail<ibv_srq>(EOPNOTSUPP);
  }
  return Fail<ibv_srq>(EINVAL);  // no protection domain
}

}  // namespace

void FillSharedReceiveOperations(verbs_context* vctx) {
  vctx->context.ops.post_srq_recv = PostSrqReceive;
  vctx->create_srq_ex = CreateSrqEx;
  vctx->get_srq_num = GetSrqNumber;
}

}  // namespace weft::verbs

using weft::verbs::Context;
using weft::verbs::Fail;
using weft::verbs::FromPublic;
using weft::verbs::Srq;

WEFT_VERBS_API ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  if (const int error = weft::verbs::Fault(weft::faults::Call::kCreateSrq, pd->context)) return weft::verbs::Fail<ibv_srq>(error);
  ibv_srq_attr& size = attributes->attr;
  if (size.max_wr < 1 || size.max_wr > weft::sim::kMaxSrqWr || size.max_sge > weft::sim::kMaxSge) return Fail<ibv_srq>(EINVAL);
  if (!FromPublic(pd->context->device)->srqs.Take()) return Fail<ibv_srq>(ENOMEM);
  Context* context = FromPublic(pd->context);
  auto* srq = new Srq{};
  srq->context = pd->context;
  srq->srq_context = attributes->srq_context;
  srq->pd = pd;
  srq->handle = context->next_handle.fetch_add(1);
  pthread_mutex_init(&srq->mutex, nullptr);
  pthread_cond_init(&srq->cond, nullptr);
  FromPublic(pd)->domain->users.fetch_add(1);
  srq->queue = context->rnic->CreateSharedReceiveQueue(FromPublic(pd)->domain, size.max_wr, size.max_sge, context->async,
                                                       static_cast<ibv_srq*>(srq));
  return srq;
}

WEFT_VERBS_API int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  return FromPublic(srq)->queue->Modify(*attributes, mask);
}

WEFT_VERBS_API int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
  *attributes = FromPublic(srq)->queue->Query();
  return 0;
}

WEFT_VERBS_API int ibv_destroy_srq(ibv_srq* public_srq) {
  Srq* srq = FromPublic(public_srq);
  if (srq->queue->users.load() != 0) return EBUSY;
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
