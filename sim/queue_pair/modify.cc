#include <infiniband/weft.h>

#include <algorithm>
#include <cerrno>

#include "sim/device/limits.h"
#include "sim/device/gid.h"
#include "sim/queue_pair/queue_pair.h"
#include "sim/queue_pair/internal.h"
#include "sim/queue_pair/transitions.h"

// ibv_modify_qp and ibv_query_qp, in both personas.
namespace weft::sim {
namespace {

constexpr uint32_t kMostNumber = 0xffffff;
constexpr uint8_t kMostTimer = 31, kMostCount = 7;  // five and three bits

bool ValuesAllowed(const ibv_qp_attr& a, int mask) {
  const auto within = [&](int bit, uint64_t value, uint64_t most) { return (mask & bit) == 0 || value <= most; };
  return within(IBV_QP_MAX_DEST_RD_ATOMIC, a.max_dest_rd_atomic, kMaxReads) &&
         within(IBV_QP_MAX_QP_RD_ATOMIC, a.max_rd_atomic, kMaxReads) && within(IBV_QP_PKEY_INDEX, a.pkey_index, 0) &&
         within(IBV_QP_TIMEOUT, a.timeout, kMostTimer) && within(IBV_QP_RETRY_CNT, a.retry_cnt, kMostCount) &&
         within(IBV_QP_RNR_RETRY, a.rnr_retry, kMostCount) && within(IBV_QP_MIN_RNR_TIMER, a.min_rnr_timer, kMostTimer) &&
         within(IBV_QP_DEST_QPN, a.dest_qp_num, kMostNumber) &&
         ((mask & IBV_QP_PORT) == 0 || a.port_num == 1) &&
         ((mask & IBV_QP_PATH_MTU) == 0 || (a.path_mtu >= IBV_MTU_256 && a.path_mtu <= IBV_MTU_4096));
}

}  // namespace

int QueuePair::Modify(const ibv_qp_attr& attributes, int mask) {
  return roce_ ? ModifyRoce(attributes, mask) : ModifyIwarp(attributes, mask);
}

void QueuePair::Reset() {
  if (connection_ != nullptr) Fail(/*orderly=*/false);
  requester_.Clear();
  responder_.Clear();
  options_.send_cq->Forget(number_);
  options_.receive_cq->Forget(number_);
  SetState(IBV_QPS_RESET);
  observer_.reset();
  upcalls_.clear();
  responder_.ForgetTargets();
  lost_ = dialled_ = false;
  ForgetRefusals();
}

uint32_t QueuePair::ConnectionOptions() const {
  return options_.type == IBV_QPT_RC && delivery() == rdmap::Delivery::kReliable ? WEFT_ECE_INFINIBAND_SEMANTICS : 0;
}

int QueuePair::SetConnectionOptions(uint32_t* options) {
  EngineLock engine(*this);
  if (connection_ != nullptr || (state() != IBV_QPS_RESET && state() != IBV_QPS_INIT)) return EINVAL;
  *options &= roce_ && options_.type == IBV_QPT_RC ? WEFT_ECE_INFINIBAND_SEMANTICS : 0;
  if (options_.type == IBV_QPT_RC) plain_ = *options == 0;
  return 0;
}

int QueuePair::ModifyIwarp(const ibv_qp_attr& attributes, int mask) {
  EngineLock engine(*this);
  if ((mask & IBV_QP_CUR_STATE) && attributes.cur_qp_state != state()) return EINVAL;
  if ((mask & IBV_QP_PORT) && attributes.port_num != 1) return EINVAL;
  if ((mask & IBV_QP_PKEY_INDEX) && attributes.pkey_index != 0) return EINVAL;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && attributes.max_dest_rd_atomic > kMaxReads) return EINVAL;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && attributes.max_rd_atomic > kMaxReads) return EINVAL;
  if (mask & IBV_QP_STATE) {
    if (int error = ChangeState(attributes.qp_state, attributes, mask)) return error;
  }
  if (mask & IBV_QP_ACCESS_FLAGS) attributes_.qp_access_flags = attributes.qp_access_flags;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) attributes_.max_dest_rd_atomic = attributes.max_dest_rd_atomic;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) attributes_.max_rd_atomic = attributes.max_rd_atomic;
  return 0;
}

// Transitions of an iWARP queue pair as a program may ask for them; to RTR and RTS it comes by rdma_cm only.
int QueuePair::ChangeState(ibv_qp_state to, const ibv_qp_attr& attributes, int mask) {
  const ibv_qp_state from = state();
  switch (to) {
    case IBV_QPS_RESET:
      Reset();
      return 0;
    case IBV_QPS_INIT:
      if (from != IBV_QPS_RESET && from != IBV_QPS_INIT) return EINVAL;
      SetState(IBV_QPS_INIT);
      return 0;
    case IBV_QPS_RTR:
    case IBV_QPS_RTS:
      return from == IBV_QPS_RTS ? 0 : EINVAL;
    case IBV_QPS_SQD:
      if (from == IBV_QPS_SQD) return 0;
      if (from != IBV_QPS_RTS || connection_ == nullptr) return EINVAL;
      connection_->closing = true;
      connection_->last_to_send = sends().posted();
      SetState(IBV_QPS_SQD);
      FinishDisconnect();
      return 0;
    case IBV_QPS_ERR:
      if (from == IBV_QPS_RESET) return EINVAL;
      if (from != IBV_QPS_ERR) Fail(/*orderly=*/true);
      return 0;
    default:
      return EINVAL;
  }
}


std::optional<PeerChoice> QueuePair::ChoosePeer(const ibv_qp_attr& attributes) const {
  const ibv_ah_attr& handle = attributes.ah_attr;
  if (handle.port_num != 1) return std::nullopt;
  PeerChoice choice;
  choice.number = attributes.dest_qp_num;
  if (handle.is_global) {
    if (handle.grh.sgid_index >= options_.addresses.size()) return std::nullopt;
    choice.address = AddressOf(handle.grh.dgid, static_cast<uint32_t>(options_.interface_index));
    choice.local = options_.addresses[handle.grh.sgid_index];
  } else {
    // All that has our port's LID is our port; RoCE's is 0. qperf names its own host's so, which tells its peer no GID.
    if (handle.dlid != 0) return std::nullopt;
    const auto own = std::find_if(options_.addresses.begin(), options_.addresses.end(), [](const auto& a) { return a.family() != 0; });
    if (own == options_.addresses.end()) return std::nullopt;
    choice.address = choice.local = *own;
    choice.own_host = true;
  }
  if (choice.address.family() == 0 || choice.local.family() != choice.address.family()) return std::nullopt;
  choice.service = service();
  choice.delivery = delivery();
  choice.ird = attributes.max_dest_rd_atomic;
  choice.receive_number = attributes.rq_psn & 0xffffff;
  choice.ord = kMaxReads;  // the program says at RTS how many; until then as many as the peer takes
  return choice;
}

int QueuePair::ModifyRoce(const ibv_qp_attr& attributes, int mask) {
  mask = RelevantAttributes(options_.type, mask);
  std::optional<PeerChoice> choice;
  bool forget = false;
  std::optional<uint32_t> send_number;
  {
    EngineLock engine(*this);
    const ibv_qp_state from = state();
    const ibv_qp_state to = mask & IBV_QP_STATE ? attributes.qp_state : from;
    if ((mask & IBV_QP_CUR_STATE) && attributes.cur_qp_state != from) return EINVAL;
    if (!TransitionAllowed(options_.type, from, to, mask) || !ValuesAllowed(attributes, mask)) return EINVAL;
    if (to == IBV_QPS_RTR) {
      choice = ChoosePeer(attributes);
      if (!choice) return EINVAL;
    }
    TakeAttributes(attributes, mask);
    forget = to == IBV_QPS_RESET || to == IBV_QPS_ERR;
    if (from == IBV_QPS_RTR && to == IBV_QPS_RTS && dialled_) send_number = attributes_.sq_psn;
    EnterState(from, to);
  }
  if (forget) peers_->Forget(number_);
  if (choice) peers_->Connect(shared_from_this(), std::move(*choice));
  if (send_number) peers_->Dial(number_, *send_number);
  return 0;
}

void QueuePair::TakeAttributes(const ibv_qp_attr& from, int mask) {
  ibv_qp_attr& to = attributes_;
  const auto take = [&](int bit, auto member) {
    if (mask & bit) to.*member = from.*member;
  };
  take(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags);
  take(IBV_QP_PKEY_INDEX, &ibv_qp_attr::pkey_index);
  take(IBV_QP_AV, &ibv_qp_attr::ah_attr);
  take(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
  take(IBV_QP_TIMEOUT, &ibv_qp_attr::timeout);
  take(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt);
  take(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry);
  take(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn);
  take(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn);
  take(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
  take(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
  take(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic);
  take(IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer);
  take(IBV_QP_PATH_MIG_STATE, &ibv_qp_attr::path_mig_state);
  take(IBV_QP_ALT_PATH, &ibv_qp_attr::alt_ah_attr);
  take(IBV_QP_EN_SQD_ASYNC_NOTIFY, &ibv_qp_attr::en_sqd_async_notify);
  if (connection_ != nullptr) connection_->stream.SetReceiverTimer(attributes_.min_rnr_timer);
}

void QueuePair::EnterState(ibv_qp_state from, ibv_qp_state to) {
  switch (to) {
    case IBV_QPS_RESET:
      Reset();
      return;
    case IBV_QPS_ERR:
      if (from == IBV_QPS_RESET) {
        SetState(IBV_QPS_ERR);
      } else if (from != IBV_QPS_ERR) {
        Fail(/*orderly=*/true);
      }
      return;
    case IBV_QPS_RTR:
      dialled_ = true;
      lost_ = false;
      SetState(IBV_QPS_RTR);
      return;
    case IBV_QPS_SQD:
      SetState(IBV_QPS_SQD);
      if (from != IBV_QPS_SQD) {
        drain_told_ = attributes_.en_sqd_async_notify == 0;
        TellOfDrain();
      }
      return;
    case IBV_QPS_RTS:
      SetState(IBV_QPS_RTS);
      doorbell_.store(true, std::memory_order_seq_cst);  // answered when the engine is let go
      return;
    default:
      SetState(to);
  }
}

void QueuePair::Query(ibv_qp_attr* attributes, ibv_qp_init_attr* init) {
  EngineLock engine(*this);  // and not the bare mutex: a doorbell may ring meanwhile
  *attributes = attributes_;
  attributes->qp_state = attributes->cur_qp_state = state();
  if (!roce_ || attributes->path_mtu == 0) attributes->path_mtu = IBV_MTU_1024;
  attributes->port_num = 1;
  attributes->cap = options_.capabilities;
  if (connection_ != nullptr) {
    attributes->max_dest_rd_atomic = static_cast<uint8_t>(std::min<uint32_t>(connection_->ird, 255));
    attributes->max_rd_atomic = static_cast<uint8_t>(std::min<uint32_t>(connection_->ord, 255));
  }
  init->cap = options_.capabilities;
  init->qp_type = options_.type;
  init->sq_sig_all = options_.signal_all;
}

}  // namespace weft::sim
