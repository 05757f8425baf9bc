#include <cerrno>

#include "verbs/export.h"
#include "verbs/objects.h"

// Asynchronous events, behind context->async_fd.
namespace weft::verbs {
namespace {

enum class Affiliation { kCq, kQp, kSrq, kPort };

Affiliation AffiliationOf(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return Affiliation::kCq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return Affiliation::kQp;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return Affiliation::kSrq;
    default:
      return Affiliation::kPort;
  }
}

void CountDelivery(const AsyncEvent& event) {
  switch (AffiliationOf(event.type)) {
    case Affiliation::kCq:
      FromPublic(static_cast<ibv_cq*>(event.owner))->async_events_delivered.fetch_add(1);
      break;
    case Affiliation::kQp:
      FromPublic(static_cast<ibv_qp*>(event.owner))->async_events_delivered.fetch_add(1);
      break;
    case Affiliation::kSrq:
      FromPublic(static_cast<ibv_srq*>(event.owner))->async_events_delivered.fetch_add(1);
      break;
    case Affiliation::kPort:
      break;
  }
}

}  // namespace
}  // namespace weft::verbs

using weft::verbs::Affiliation;
using weft::verbs::AffiliationOf;

WEFT_VERBS_API int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  auto taken = weft::verbs::FromPublic(context)->async->queue.Pop(weft::verbs::CountDelivery);
  if (!taken.has_value()) return -1;
  *event = {};
  event->event_type = taken->type;
  switch (AffiliationOf(taken->type)) {
    case Affiliation::kCq:
      event->element.cq = static_cast<ibv_cq*>(taken->owner);
      break;
    case Affiliation::kQp:
      event->element.qp = static_cast<ibv_qp*>(taken->owner);
      break;
    case Affiliation::kSrq:
      event->element.srq = static_cast<ibv_srq*>(taken->owner);
      break;
    case Affiliation::kPort:
      event->element.port_num = 1;
      break;
  }
  return 0;
}

WEFT_VERBS_API void ibv_ack_async_event(ibv_async_event* event) {
  switch (AffiliationOf(event->event_type)) {
    case Affiliation::kCq: {
      ibv_cq* cq = event->element.cq;
      pthread_mutex_lock(&cq->mutex);
      ++cq->async_events_completed;
      pthread_cond_signal(&cq->cond);
      pthread_mutex_unlock(&cq->mutex);
      break;
    }
    case Affiliation::kQp: {
      ibv_qp* qp = event->element.qp;
      pthread_mutex_lock(&qp->mutex);
      ++qp->events_completed;
      pthread_cond_signal(&qp->cond);
      pthread_mutex_unlock(&qp->mutex);
      break;
    }
    case Affiliation::kSrq: {
      ibv_srq* srq = event->element.srq;
      pthread_mutex_lock(&srq->mutex);
      ++srq->events_completed;
      pthread_cond_signal(&srq->cond);
      pthread_mutex_unlock(&srq->mutex);
      break;
    }
    case Affiliation::kPort:
      break;
  }
}
