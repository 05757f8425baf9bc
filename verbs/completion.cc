#include <cerrno>
#include <chrono>
#include <memory>

#include "verbs/export.h"
#include "verbs/objects.h"

// Completion channels and completion queues.
namespace weft::verbs {
namespace {

// --- fast paths: no look-up, no reference counting ---

int PollCq(ibv_cq* cq, int count, ibv_wc* completions) { return FromPublic(cq)->queue->Poll(count, completions); }

int RequestNotify(ibv_cq* cq, int solicited_only) {
  FromPublic(cq)->queue->RequestNotify(solicited_only != 0);
  return 0;
}

// ---

Cq* CreateCq(ibv_context* public_context, uint32_t entries, void* cq_context, ibv_comp_channel* channel,
             uint32_t comp_vector, sim::CompletionQueue::Features features = {}) {
  Context* context = FromPublic(public_context);
  if (const int error = Fault(faults::Call::kCreateCq, public_context)) return Fail<Cq>(error);
  if (entries < 1 || entries > sim::kMaxCqe) return Fail<Cq>(EINVAL);
  if (comp_vector >= static_cast<uint32_t>(public_context->num_comp_vectors)) return Fail<Cq>(EINVAL);
  if (channel != nullptr && channel->context != public_context) return Fail<Cq>(EINVAL);
  if (!FromPublic(public_context->device)->cqs.Take()) return Fail<Cq>(ENOMEM);
  auto* cq = new Cq{};
  Name(*cq, public_context);
  cq->channel = channel;
  cq->cq_context = cq_context;
  pthread_mutex_init(&cq->mutex, nullptr);
  pthread_cond_init(&cq->cond, nullptr);
  cq->queue = std::make_shared<sim::CompletionQueue>(static_cast<int>(entries),
                                                     channel == nullptr ? nullptr : FromPublic(channel)->queue,
                                                     context->async, ToPublic(cq), features);
  cq->cqe = cq->queue->capacity();
  if (channel != nullptr) {
    pthread_mutex_lock(&public_context->mutex);
    ++channel->refcnt;
    pthread_mutex_unlock(&public_context->mutex);
  }
  return cq;
}

ibv_cq_ex* CreateCqEx(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  constexpr uint32_t kKnownMask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  constexpr uint32_t kKnownFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  constexpr uint64_t kTimestamps = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  if (attributes->comp_mask & ~kKnownMask) return Fail<ibv_cq_ex>(EOPNOTSUPP);
  if (attributes->wc_flags & ~(uint64_t{IBV_WC_STANDARD_FLAGS} | kTimestamps)) return Fail<ibv_cq_ex>(EOPNOTSUPP);
  const uint32_t flags = attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attributes->flags : 0;
  if (flags & ~kKnownFlags) return Fail<ibv_cq_ex>(EOPNOTSUPP);
  Pd* parent = nullptr;
  if (attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
    if (attributes->parent_domain == nullptr || attributes->parent_domain->context != context) return Fail<ibv_cq_ex>(EINVAL);
    parent = FromPublic(attributes->parent_domain);
    if (parent->base == nullptr) return Fail<ibv_cq_ex>(EINVAL);  // a plain protection domain
  }
  Cq* cq = CreateCq(context, attributes->cqe, attributes->cq_context, attributes->channel, attributes->comp_vector,
                    {.timestamps = (attributes->wc_flags & kTimestamps) != 0,
                     .ignore_overrun = (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0});
  if (cq == nullptr) return nullptr;
  cq->single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  cq->parent = parent;
  if (parent != nullptr) parent->domain->users.fetch_add(1);
  FillPollOperations(cq, attributes->wc_flags);
  return cq;
}

int ModifyCq(ibv_cq* cq, ibv_modify_cq_attr* attributes) {
  if (!Known(FromPublic(cq))) return ENOENT;
  if (attributes->attr_mask & ~uint32_t{IBV_CQ_ATTR_MODERATE}) return EINVAL;
  if (attributes->attr_mask & IBV_CQ_ATTR_MODERATE) {
    FromPublic(cq)->queue->Moderate(attributes->moderate.cq_count, std::chrono::microseconds(attributes->moderate.cq_period));
  }
  return 0;
}

}  // namespace

void FillCompletionOperations(verbs_context* vctx) {
  vctx->context.ops.poll_cq = PollCq;
  vctx->context.ops.req_notify_cq = RequestNotify;
  vctx->create_cq_ex = CreateCqEx;
  vctx->modify_cq = Reported<ModifyCq>;
}

}  // namespace weft::verbs

using weft::verbs::Channel;
using weft::verbs::Cq;
using weft::verbs::Fail;
using weft::verbs::FromPublic;
using weft::verbs::Report;

WEFT_VERBS_API ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (const int error = weft::verbs::Fault(weft::faults::Call::kCreateCompChannel, context)) return Fail<ibv_comp_channel>(error);
  auto queue = std::make_shared<weft::sim::CompletionChannel>();
  if (queue->fd() < 0) return Fail<ibv_comp_channel>(EMFILE);
  auto* channel = new Channel{};
  channel->context = context;
  channel->fd = queue->fd();
  channel->queue = std::move(queue);
  return channel;
}

WEFT_VERBS_API int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  ibv_context* context = channel->context;
  pthread_mutex_lock(&context->mutex);
  const bool busy = channel->refcnt != 0;
  pthread_mutex_unlock(&context->mutex);
  if (busy) return Report(EBUSY);
  delete FromPublic(channel);
  return 0;
}

WEFT_VERBS_API ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel,
                                     int comp_vector) {
  if (entries < 0 || comp_vector < 0) return Fail<ibv_cq>(EINVAL);
  Cq* cq = weft::verbs::CreateCq(context, static_cast<uint32_t>(entries), cq_context, channel,
                                 static_cast<uint32_t>(comp_vector));
  return cq == nullptr ? nullptr : weft::verbs::ToPublic(cq);
}

WEFT_VERBS_API int ibv_resize_cq(ibv_cq* cq, int entries) {
  if (!weft::verbs::Known(FromPublic(cq))) return Report(ENOENT);
  if (const int error = weft::verbs::Fault(weft::faults::Call::kResizeCq, cq->context)) return Report(error);
  const int error = FromPublic(cq)->queue->Resize(entries);
  if (error == 0) cq->cqe = FromPublic(cq)->queue->capacity();
  return Report(error);
}

WEFT_VERBS_API int ibv_destroy_cq(ibv_cq* public_cq) {
  Cq* cq = FromPublic(public_cq);
  if (!weft::verbs::Known(cq)) return Report(ENOENT);
  if (cq->queue->users.load() != 0) return Report(EBUSY);
  cq->queue->Retire();
  if (cq->channel != nullptr) {
    FromPublic(cq->channel)->queue->Remove([public_cq](void* owner) { return owner == public_cq; });
  }
  FromPublic(cq->context)->async->Forget(public_cq);
  // No event is delivered from here on; those that were are acknowledged first (ibv_get_cq_event(3)).
  pthread_mutex_lock(&cq->mutex);
  while (cq->comp_events_completed != cq->comp_events_delivered.load() ||
         cq->async_events_completed != cq->async_events_delivered.load()) {
    pthread_cond_wait(&cq->cond, &cq->mutex);
  }
  pthread_mutex_unlock(&cq->mutex);
  if (cq->channel != nullptr) {
    pthread_mutex_lock(&cq->context->mutex);
    --cq->channel->refcnt;
    pthread_mutex_unlock(&cq->context->mutex);
  }
  FromPublic(cq->context->device)->cqs.Return();
  if (cq->parent != nullptr) cq->parent->domain->users.fetch_sub(1);
  pthread_cond_destroy(&cq->cond);
  pthread_mutex_destroy(&cq->mutex);
  delete cq;
  return 0;
}

WEFT_VERBS_API int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** public_cq, void** cq_context) {
  auto owner = FromPublic(channel)->queue->Pop(
      [](void* taken) { FromPublic(static_cast<ibv_cq*>(taken))->comp_events_delivered.fetch_add(1); });
  if (!owner.has_value()) return -1;
  *public_cq = static_cast<ibv_cq*>(*owner);
  *cq_context = (*public_cq)->cq_context;
  return 0;
}

WEFT_VERBS_API void ibv_ack_cq_events(ibv_cq* cq, unsigned int count) {
  pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += count;
  pthread_cond_signal(&cq->cond);
  pthread_mutex_unlock(&cq->mutex);
}
