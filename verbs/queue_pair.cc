#include <infiniband/weft.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/settings.h"
#include "sim/datagram/queue_pair.h"
#include "verbs/export.h"
#include "verbs/objects.h"
#include "verbs/send_batch.h"
#include "verbs/xrc.h"

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

bool TypeAllowed(ibv_qp_type type, Persona persona) {
  switch (type) {
    case IBV_QPT_RC:
      return true;
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
      return persona == Persona::kRoce;
    default:
      return false;
  }
}

// What XRC's two halves do not have is left out of `attributes`; `pd` is null for the one that receives.
void LeaveOut(ibv_pd*& pd, ibv_qp_init_attr_ex& attributes) {
  if (attributes.qp_type == IBV_QPT_XRC_RECV) {
    pd = nullptr;
    attributes.send_cq = nullptr;
    attributes.cap = {};
  } else if (attributes.qp_type != IBV_QPT_XRC_SEND) {
    return;
  }
  attributes.recv_cq = nullptr;
  attributes.cap.max_recv_wr = attributes.cap.max_recv_sge = 0;
}

// Known (objects.h), of the structure within ibv_qp_ex.
bool IsKnown(const ibv_qp* qp) {
  const Identity& identity = FromPublic(const_cast<ibv_qp*>(qp))->identity;
  return qp->handle == identity.handle && qp->context == identity.context;
}

// ibv_cq and ibv_srq, which may be null.
bool AreKnown(const ibv_qp_init_attr_ex& attributes) {
  const auto known = [](auto* object) { return object == nullptr || Known(FromPublic(object)); };
  return known(attributes.send_cq) && known(attributes.recv_cq) && known(attributes.srq);
}

// 0, or why such a queue pair cannot be made.
int Check(ibv_context* context, ibv_pd* pd, ibv_qp_init_attr_ex& attributes) {
  const auto of_another = [context](const auto* object) { return object == nullptr || object->context != context; };
  if (!TypeAllowed(attributes.qp_type, FromPublic(context)->rnic->settings().persona)) return EOPNOTSUPP;
  if ((pd != nullptr && !Known(FromPublic(pd))) || !AreKnown(attributes)) return ENOENT;
  if (attributes.qp_type == IBV_QPT_XRC_RECV) {
    const bool in_domain = (attributes.comp_mask & IBV_QP_INIT_ATTR_XRCD) && !of_another(attributes.xrcd);
    return in_domain && attributes.srq == nullptr ? 0 : EINVAL;
  }
  if (of_another(pd) || of_another(attributes.send_cq)) return EINVAL;
  if (attributes.qp_type != IBV_QPT_XRC_SEND && of_another(attributes.recv_cq)) return EINVAL;
  if (attributes.srq != nullptr) {
    if (attributes.srq->context != context || FromPublic(attributes.srq)->xrcd != nullptr) return EINVAL;
    if (attributes.qp_type == IBV_QPT_XRC_SEND) return EINVAL;
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

// What the public structure says, and programs may look at.
void FillPublic(Qp& qp, ibv_context* context, ibv_qp_type type, void* qp_context) {
  ibv_qp& base = qp.qp_base;
  base.context = context;
  base.qp_context = qp_context;
  base.handle = FromPublic(context)->next_handle.fetch_add(1);
  qp.identity = {.context = context, .handle = base.handle};
  base.qp_num = qp.engine->number();
  base.qp_type = type;
  pthread_mutex_init(&base.mutex, nullptr);
  pthread_cond_init(&base.cond, nullptr);
}

// On success `attributes.cap` is what was granted. `send_ops_flags` as in ibv_qp_init_attr_ex; 0: without ibv_wr_*.
ibv_qp* CreateQp(ibv_context* public_context, ibv_pd* pd, ibv_qp_init_attr_ex& attributes, uint64_t send_ops_flags) {
  LeaveOut(pd, attributes);
  if (int error = Check(public_context, pd, attributes)) return Fail<ibv_qp>(error);
  if (int error = Fault(faults::Call::kCreateQp, public_context)) return Fail<ibv_qp>(error);
  Context* context = FromPublic(public_context);
  auto qp = std::make_unique<Qp>();
  if (send_ops_flags != 0) {
    const Persona persona = context->rnic->settings().persona;
    if (int error = FillSendOperations(qp.get(), attributes.qp_type, send_ops_flags, persona)) return Fail<ibv_qp>(error);
  }
  sim::QueuePairOptions options;
  options.async = context->async;
  options.owner = &qp->qp_base;
  std::shared_ptr<SharedOwners> owners;
  if (attributes.qp_type == IBV_QPT_XRC_RECV) {
    qp->xrcd = FromPublic(attributes.xrcd);
    options.xrc = qp->xrcd->shared->domain;
    options.pd = options.xrc->domain();
    options.send_cq = options.receive_cq = options.xrc->completions();
    options.async = owners = std::make_shared<SharedOwners>();
  } else {
    options.pd = FromPublic(pd)->domain;
    options.send_cq = FromPublic(attributes.send_cq)->queue;
    options.receive_cq = attributes.recv_cq != nullptr ? FromPublic(attributes.recv_cq)->queue : options.send_cq;
  }
  if (attributes.srq != nullptr) options.shared_receives = FromPublic(attributes.srq)->queue;
  options.capabilities = attributes.cap;
  options.capabilities.max_inline_data = std::max(options.capabilities.max_inline_data, kLeastInline);
  options.signal_all = attributes.sq_sig_all != 0;
  options.device = public_context->device->name;
  options.type = attributes.qp_type;
  const sim::DeviceInfo device = FromPublic(public_context->device)->Info();
  options.addresses = device.addresses;
  options.interface_index = device.interface_index;
  auto created = CreateEngine(*context, attributes.qp_type, std::move(options));
  if (!created.ok()) return Fail<ibv_qp>(created.error());

  qp->shared = std::move(*created);
  qp->engine = qp->shared.get();
  FillPublic(*qp, public_context, attributes.qp_type, attributes.qp_context);
  ibv_qp& base = qp->qp_base;
  base.pd = pd;
  base.send_cq = attributes.send_cq;
  base.recv_cq = attributes.recv_cq;
  base.srq = attributes.srq;
  base.state = IBV_QPS_RESET;
  attributes.cap = qp->engine->capabilities();
  if (qp->xrcd != nullptr) {
    owners->Add(&base);
    qp->xrcd->users.fetch_add(1);
    qp->xrcd->shared->Add({qp->shared, owners});
  } else {
    QueuePairNumbers::Process().Add(&base);
  }
  return &qp.release()->qp_base;
}

ibv_qp* CreateQpEx(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  constexpr uint32_t kKnownMask =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if (attributes->comp_mask & ~kKnownMask) return Fail<ibv_qp>(EOPNOTSUPP);
  if ((attributes->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attributes->create_flags != 0) {
    return Fail<ibv_qp>(EOPNOTSUPP);
  }
  const bool with_operations = attributes->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  return CreateQp(context, attributes->comp_mask & IBV_QP_INIT_ATTR_PD ? attributes->pd : nullptr, *attributes,
                  with_operations ? attributes->send_ops_flags : 0);
}

// EINVAL: something is missing, or there is no such queue pair in the domain.
ibv_qp* OpenQp(ibv_context* context, ibv_qp_open_attr* attributes) {
  constexpr uint32_t kNeeded = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  if (attributes->comp_mask & ~(kNeeded | IBV_QP_OPEN_ATTR_CONTEXT)) return Fail<ibv_qp>(EOPNOTSUPP);
  if ((attributes->comp_mask & kNeeded) != kNeeded || attributes->qp_type != IBV_QPT_XRC_RECV) return Fail<ibv_qp>(EINVAL);
  if (attributes->xrcd == nullptr || attributes->xrcd->context != context) return Fail<ibv_qp>(EINVAL);
  auto qp = std::make_unique<Qp>();
  qp->xrcd = FromPublic(attributes->xrcd);
  qp->qp_base.context = context;  // events may come from now on
  XrcShared::Receiver receiver;
  if (!qp->xrcd->shared->Open(attributes->qp_num, &qp->qp_base, &receiver)) return Fail<ibv_qp>(EINVAL);
  qp->shared = receiver.engine;
  qp->engine = qp->shared.get();
  FillPublic(*qp, context, IBV_QPT_XRC_RECV,
             attributes->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attributes->qp_context : nullptr);
  ibv_qp_attr current;
  ibv_qp_init_attr unused;
  qp->engine->Query(&current, &unused);
  qp->qp_base.state = current.qp_state;
  qp->xrcd->users.fetch_add(1);
  return &qp.release()->qp_base;
}

// Lets go of the engine; it ends with the last that stands for it.
void ReleaseEngine(Qp& qp) {
  if (qp.xrcd == nullptr) return qp.engine->Destroy();
  if (qp.xrcd->shared->Close(qp.qp_base.qp_num, &qp.qp_base)) qp.engine->Destroy();
  qp.xrcd->users.fetch_sub(1);
}

}  // namespace

void FillQueuePairOperations(verbs_context* vctx) {
  vctx->context.ops.post_send = Reported<PostSend>;
  vctx->context.ops.post_recv = Reported<PostReceive>;
  vctx->create_qp_ex = CreateQpEx;
  vctx->open_qp = OpenQp;
}

}  // namespace weft::verbs

using weft::verbs::FromPublic;
using weft::verbs::Qp;
using weft::verbs::Report;

WEFT_VERBS_API ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  ibv_qp_init_attr_ex extended = {};
  extended.qp_context = attributes->qp_context;
  extended.send_cq = attributes->send_cq;
  extended.recv_cq = attributes->recv_cq;
  extended.srq = attributes->srq;
  extended.cap = attributes->cap;
  extended.qp_type = attributes->qp_type;
  extended.sq_sig_all = attributes->sq_sig_all;
  ibv_qp* qp = weft::verbs::CreateQp(pd->context, pd, extended, 0);
  if (qp != nullptr) attributes->cap = extended.cap;
  return qp;
}

WEFT_VERBS_API ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  Qp* known = FromPublic(qp);
  return known->batch == nullptr ? nullptr : known;
}

WEFT_VERBS_API int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  if (!weft::verbs::IsKnown(qp)) return Report(ENOENT);
  if (const int error = weft::verbs::Fault(weft::faults::Call::kModifyQp, qp)) return Report(error);
  const int error = FromPublic(qp)->engine->Modify(*attributes, mask);
  if (error == 0 && (mask & IBV_QP_STATE)) qp->state = attributes->qp_state;
  return Report(error);
}

WEFT_VERBS_API int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask, ibv_qp_init_attr* init) {
  if (!weft::verbs::IsKnown(qp)) return Report(ENOENT);
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
  if (!weft::verbs::IsKnown(public_qp)) return Report(ENOENT);
  if (const auto* datagrams = dynamic_cast<const weft::sim::DatagramQueuePair*>(qp->engine)) {
    if (datagrams->attached()) return Report(EBUSY);
  }
  if (qp->xrcd == nullptr) weft::verbs::QueuePairNumbers::Process().Remove(public_qp);
  weft::verbs::ReleaseEngine(*qp);
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

// Connected queue pairs have options (infiniband/weft.h).
WEFT_VERBS_API int ibv_query_ece(ibv_qp* qp, ibv_ece* ece) {
  auto* engine = dynamic_cast<weft::sim::QueuePair*>(FromPublic(qp)->engine);
  if (engine == nullptr) return Report(EOPNOTSUPP);
  *ece = {.vendor_id = WEFT_ECE_VENDOR_ID, .options = engine->ConnectionOptions(), .comp_mask = 0};
  return 0;
}

WEFT_VERBS_API int ibv_set_ece(ibv_qp* qp, ibv_ece* ece) {
  auto* engine = dynamic_cast<weft::sim::QueuePair*>(FromPublic(qp)->engine);
  if (engine == nullptr) return Report(EOPNOTSUPP);
  if (ece->vendor_id != WEFT_ECE_VENDOR_ID || ece->comp_mask != 0) return Report(EINVAL);
  return Report(engine->SetConnectionOptions(&ece->options));
}

// Data arrives over a byte stream and is placed by a processor that copies upward, but nothing promises that.
WEFT_VERBS_API int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, uint32_t) { return 0; }

// For librdmacm: the queue pair with that number, or nullptr.
WEFT_VERBS_API ibv_qp* weft_private_find_qp(uint32_t number) { return weft::verbs::QueuePairNumbers::Process().Find(number); }
