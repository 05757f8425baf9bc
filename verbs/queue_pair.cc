#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/settings.h"
#include "sim/datagram_queue_pair.h"
#include "verbs/export.h"
#include "verbs/objects.h"
#include "verbs/send_batch.h"

// Queue pairs.
namespace weft::verbs {

Qp::Qp() : ibv_qp_ex{} {}
Qp::~Qp() = default;

namespace {

// The queue pairs of this process by number: rdma_cm programs that create their own name them so (rdma_conn_param.qp_num).
class QueuePairNumbers {
 public:
  static QueuePairNumbers& Process() {
    static QueuePairNumbers* const numbers = new QueuePairNumbers;
    return *numbers;
  }
  void Add(ibv_qp* qp) {
    std::lock_guard lock(mutex_);
    known_[qp->qp_num] = qp;
  }
  void Remove(const ibv_qp* qp) {
    std::lock_guard lock(mutex_);
    known_.erase(qp->qp_num);
  }
  ibv_qp* Find(uint32_t number) {
    std::lock_guard lock(mutex_);
    const auto found = known_.find(number);
    return found != known_.end() ? found->second : nullptr;
  }

 private:
  std::mutex mutex_;  // guards known_
  std::unordered_map<uint32_t, ibv_qp*> known_;
};

// --- fast paths: no look-up, no reference counting ---

int PostSend(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad) {
  if (faults::Enabled(faults::Kind::kFail)) [[unlikely]] {
    if (const int error = Fault(faults::Call::kPostSend, qp, static_cast<int>(list->opcode))) return *bad = list, error;
  }
  return FromPublic(qp)->engine->PostSend(list, bad, /*all_or_nothing=*/false);
}

int PostReceive(ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr** bad) {
  if (faults::Enabled(faults::Kind::kFail)) [[unlikely]] {
    if (const int error = Fault(faults::Call::kPostRecv, qp)) return *bad = list, error;
  }
  return FromPublic(qp)->engine->PostReceive(list, bad);
}

// ---

// Bytes of inline data that a queue pair takes whatever is asked for: adapters have room for some in any work request, and programs
// (rdma_xclient) count on it.
constexpr uint32_t kLeastInline = 64;

bool WithinLimits(const ibv_qp_cap& cap) {
  return cap.max_send_wr <= sim::kMaxQpWr && cap.max_recv_wr <= sim::kMaxQpWr && cap.max_send_sge <= sim::kMaxSge &&
         cap.max_recv_sge <= sim::kMaxSge && cap.max_inline_data <= sim::kMaxInline;
}

// 0, or why such a queue pair cannot be made.
int Check(ibv_pd* pd, ibv_qp_init_attr_ex& attributes) {
  const bool roce = FromPublic(pd->context)->rnic->settings().persona == Persona::kRoce;
  if (attributes.qp_type != IBV_QPT_RC && !(roce && (attributes.qp_type == IBV_QPT_UC || attributes.qp_type == IBV_QPT_UD))) {
    return EOPNOTSUPP;
  }
  if (attributes.send_cq == nullptr || attributes.recv_cq == nullptr) return EINVAL;
  if (attributes.send_cq->context != pd->context || attributes.recv_cq->context != pd->context) return EINVAL;
  if (attributes.srq != nullptr) {
    if (attributes.srq->context != pd->context) return EINVAL;
    attributes.cap.max_recv_wr = attributes.cap.max_recv_sge = 0;  // the shared queue's count, ibv_create_qp(3)
  }
  if (!WithinLimits(attributes.cap)) return EINVAL;
  return 0;
}

Result<std::shared_ptr<sim::AnyQueuePair>, int> CreateEngine(Context& context, ibv_qp_type type, sim::QueuePairOptions options) {
  if (type == IBV_QPT_UD) {
    const ibv_mtu mtu = FromPublic(context.context.device)->Info().PortAttributes().active_mtu;
    auto created = context.rnic->CreateDatagramQueuePair({std::move(options), 128u << mtu});  // IBV_MTU_256 is 1
    if (!created.ok()) return created.error();
    return std::shared_ptr<sim::AnyQueuePair>(std::move(*created));
  }
  auto created = context.rnic->CreateQueuePair(std::move(options));
  if (!created.ok()) return created.error();
  return std::shared_ptr<sim::AnyQueuePair>(std::move(*created));
}

// On success `attributes.cap` is what was granted. `send_ops_flags` as in ibv_qp_init_attr_ex; 0: without ibv_wr_*.
ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr_ex& attributes, uint64_t send_ops_flags) {
  if (int error = Check(pd, attributes)) return Fail<ibv_qp>(error);
  if (int error = Fault(faults::Call::kCreateQp, pd->context)) return Fail<ibv_qp>(error);
  Context* context = FromPublic(pd->context);
  auto qp = std::make_unique<Qp>();
  if (send_ops_flags != 0) {
    const Persona persona = context->rnic->settings().persona;
    if (int error = FillSendOperations(qp.get(), attributes.qp_type, send_ops_flags, persona)) return Fail<ibv_qp>(error);
  }
  sim::QueuePairOptions options;
  options.pd = FromPublic(pd)->domain;
  options.send_cq = FromPublic(attributes.send_cq)->queue;
  options.receive_cq = FromPublic(attributes.recv_cq)->queue;
  if (attributes.srq != nullptr) options.shared_receives = FromPublic(attributes.srq)->queue;
  options.capabilities = attributes.cap;
  options.capabilities.max_inline_data = std::max(options.capabilities.max_inline_data, kLeastInline);
  options.signal_all = attributes.sq_sig_all != 0;
  options.async = context->async;
  options.owner = &qp->qp_base;
  options.device = pd->context->device->name;
  options.type = attributes.qp_type;
  const sim::DeviceInfo device = FromPublic(pd->context->device)->Info();
  options.addresses = device.addresses;
  options.interface_index = device.interface_index;
  auto created = CreateEngine(*context, attributes.qp_type, std::move(options));
  if (!created.ok()) return Fail<ibv_qp>(created.error());

  qp->shared = std::move(*created);
  qp->engine = qp->shared.get();
  ibv_qp& base = qp->qp_base;
  base.context = pd->context;
  base.qp_context = attributes.qp_context;
  base.pd = pd;
  base.send_cq = attributes.send_cq;
  base.recv_cq = attributes.recv_cq;
  base.srq = attributes.srq;
  base.handle = context->next_handle.fetch_add(1);
  base.qp_num = qp->engine->number();
  base.state = IBV_QPS_RESET;
  base.qp_type = attributes.qp_type;
  pthread_mutex_init(&base.mutex, nullptr);
  pthread_cond_init(&base.cond, nullptr);
  attributes.cap = qp->engine->capabilities();
  QueuePairNumbers::Process().Add(&base);
  return &qp.release()->qp_base;
}

ibv_qp* CreateQpEx(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  constexpr uint32_t kKnownMask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if (attributes->comp_mask & ~kKnownMask) return Fail<ibv_qp>(EOPNOTSUPP);
  if ((attributes->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attributes->create_flags != 0) {
    return Fail<ibv_qp>(EOPNOTSUPP);
  }
  if (!(attributes->comp_mask & IBV_QP_INIT_ATTR_PD) || attributes->pd == nullptr ||
      attributes->pd->context != context) {
    return Fail<ibv_qp>(EINVAL);
  }
  const bool with_operations = attributes->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  return CreateQp(attributes->pd, *attributes, with_operations ? attributes->send_ops_flags : 0);
}

}  // namespace

void FillQueuePairOperations(verbs_context* vctx) {
  vctx->context.ops.post_send = PostSend;
  vctx->context.ops.post_recv = PostReceive;
  vctx->create_qp_ex = CreateQpEx;
}

}  // namespace weft::verbs

using weft::verbs::FromPublic;
using weft::verbs::Qp;

WEFT_VERBS_API ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  ibv_qp_init_attr_ex extended = {};
  extended.qp_context = attributes->qp_context;
  extended.send_cq = attributes->send_cq;
  extended.recv_cq = attributes->recv_cq;
  extended.srq = attributes->srq;
  extended.cap = attributes->cap;
  extended.qp_type = attributes->qp_type;
  extended.sq_sig_all = attributes->sq_sig_all;
  ibv_qp* qp = weft::verbs::CreateQp(pd, extended, 0);
  if (qp != nullptr) attributes->cap = extended.cap;
  return qp;
}

WEFT_VERBS_API ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  Qp* known = FromPublic(qp);
  return known->batch == nullptr ? nullptr : known;
}

WEFT_VERBS_API int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  if (const int error = weft::verbs::Fault(weft::faults::Call::kModifyQp, qp)) return error;
  const int error = FromPublic(qp)->engine->Modify(*attributes, mask);
  if (error == 0 && (mask & IBV_QP_STATE)) qp->state = attributes->qp_state;
  return error;
}

WEFT_VERBS_API int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask, ibv_qp_init_attr* init) {
  *init = {};
  FromPublic(qp)->engine->Query(attributes, init);
  init->qp_context = qp->qp_context;
  init->send_cq = qp->send_cq;
  init->recv_cq = qp->recv_cq;
  init->srq = qp->srq;
  init->qp_type = qp->qp_type;
  if (mask & IBV_QP_STATE) qp->state = attributes->qp_state;
  return 0;
}

WEFT_VERBS_API int ibv_destroy_qp(ibv_qp* public_qp) {
  Qp* qp = FromPublic(public_qp);
  if (const auto* datagrams = dynamic_cast<const weft::sim::DatagramQueuePair*>(qp->engine)) {
    if (datagrams->attached()) return EBUSY;
  }
  weft::verbs::QueuePairNumbers::Process().Remove(public_qp);
  qp->engine->Destroy();
  FromPublic(public_qp->context)->async->Forget(public_qp);
  // No event is delivered from here on; those that were are acknowledged first (ibv_get_async_event(3)).
  pthread_mutex_lock(&public_qp->mutex);
  while (public_qp->events_completed != qp->async_events_delivered.load()) {
    pthread_cond_wait(&public_qp->cond, &public_qp->mutex);
  }
  pthread_mutex_unlock(&public_qp->mutex);
  pthread_cond_destroy(&public_qp->cond);
  pthread_mutex_destroy(&public_qp->mutex);
  delete qp;
  return 0;
}

// Data arrives over a byte stream and is placed by a processor that copies upward, but nothing promises that.
WEFT_VERBS_API int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, uint32_t) { return 0; }

// For librdmacm: the queue pair with that number, or nullptr.
WEFT_VERBS_API ibv_qp* weft_private_find_qp(uint32_t number) { return weft::verbs::QueuePairNumbers::Process().Find(number); }
