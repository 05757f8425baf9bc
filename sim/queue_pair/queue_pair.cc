#include "sim/queue_pair/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "sim/device/limits.h"
#include "sim/queues/names.h"
#include "sim/queue_pair/internal.h"

// The verbs side of a queue pair: posting, states. queue_pair_engine.cc drives the connection.
namespace weft::sim {
namespace {

WindowOwner NextWindowOwner() {
  static std::atomic<WindowOwner> last{kNoWindowOwner};
  return ++last;
}

// The unreliable connection has no answers (InfiniBand specification, volume 1, table 37).
bool TypeHas(ibv_qp_type type, ibv_wr_opcode opcode) {
  const bool answered = opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  return type != IBV_QPT_UC || !answered;
}

}  // namespace

QueuePair::QueuePair(Adapter& adapter, PeerFinder* peers, uint32_t number, QueuePairOptions options)
    : adapter_(adapter),
      peers_(peers),
      number_(number),
      memory_user_(MemoryUser::QueuePair(number_, NextWindowOwner())),
      roce_(adapter.settings().persona == Persona::kRoce),
      options_(std::move(options)),
      completer_(number_, counters_),
      requester_(adapter_.memory(), options_, memory_user_, roce_, completer_),
      responder_(adapter_.memory(), options_, memory_user_, completer_) {
  if (options_.shared_receives) {
    options_.shared_receives->users.fetch_add(1);
    options_.capabilities.max_recv_wr = options_.capabilities.max_recv_sge = 0;
  }
  // On iWARP what a program does not say is open to peers.
  if (!roce_) attributes_.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  options_.pd->users.fetch_add(1);
  options_.send_cq->users.fetch_add(1);
  options_.receive_cq->users.fetch_add(1);
}

QueuePair::~QueuePair() = default;

void QueuePair::SetState(ibv_qp_state to) {
  const ibv_qp_state from = state_.exchange(to, std::memory_order_seq_cst);
  if (from != to && TraceEnabled()) Trace(Format("qp 0x%x: %s -> %s", number_, NameOf(from), NameOf(to)));
}

std::string QueuePair::PeerName() const {
  std::string address = last_peer_.family() != 0 ? last_peer_.ToString() : "a peer that it never reached";
  return dialled_ ? Format("qp 0x%x at %s", attributes_.dest_qp_num, address.c_str()) : address;
}

int QueuePair::PostSend(ibv_send_wr* list, ibv_send_wr** bad, bool all_or_nothing) {
  const ibv_qp_state state = this->state();
  if (state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR || options_.xrc) {
    *bad = list;
    return EINVAL;
  }
  int error = 0;
  bool ring = true, arm = false, answers = false;
  {
    std::lock_guard lock(sends().post_mutex());
    unsigned flags = 0;
    uint64_t bytes = 0;
    uint32_t staged = 0;
    for (; list != nullptr; list = list->next) {
      error = TypeHas(options_.type, list->opcode) ? sends().Stage(*list, options_.signal_all, is_roce(), staged) : EINVAL;
      if (error != 0) {
        *bad = list;
        break;
      }
      if (options_.type == IBV_QPT_XRC_SEND) sends().entry(sends().posted() + staged).request.target = list->qp_type.xrc.remote_srqn;
      flags |= list->send_flags;
      bytes += sends().entry(sends().posted() + staged).request.length;
      ++staged;
    }
    if (staged == 0 || (error != 0 && all_or_nothing)) return error;
    sends().Publish(staged);
    answers = batching_.Answers(options_.send_cq->taken() + options_.receive_cq->taken());
    const DoorbellBatching::Post post = {
        .bytes = bytes, .signaled = (flags & IBV_SEND_SIGNALED) != 0, .may_sleep = options_.send_cq->channel() != nullptr};
    ring = answers || !batching_.Defers(post, network().Now());
    arm = !ring && !std::exchange(flush_timer_armed_, true);
  }
  if (!ring) AddErrand();
  if (arm) ArmFlushTimer();
  if (ring || this->state() != IBV_QPS_RTS) {
    Ring();
    // What the program does between two posts counts, not what we do in one.
    batching_.Returned(answers ? transport::Time{} : network().Now());
  }
  return error;
}

void QueuePair::ArmFlushTimer() {
  adapter_.network().RunAt(network().Now() + DoorbellBatching::kFlushAfter, [weak = weak_from_this(), posted = sends().posted()] {
    if (auto self = weak.lock()) self->OnFlushTimer(posted);
  });
}

void QueuePair::OnFlushTimer(uint64_t posted_before) {
  Ring();
  {
    std::lock_guard lock(sends().post_mutex());
    flush_timer_armed_ = sends().posted() != posted_before;  // still posting: stay awake, that needs no wake-up
    if (!flush_timer_armed_) return;
  }
  ArmFlushTimer();
}

void QueuePair::Ring() {
  doorbell_.store(true, std::memory_order_seq_cst);
  while (doorbell_.load(std::memory_order_seq_cst)) {
    std::unique_lock engine(engine_mutex_, std::try_to_lock);
    if (!engine.owns_lock()) return;  // its owner sees the doorbell after it lets go
    doorbell_.store(false, std::memory_order_seq_cst);
    if (connection_ != nullptr) {
      Transmit();
      CheckStream();
      WatchProgress();
    } else if (state() == IBV_QPS_ERR) {
      FlushQueues(std::nullopt);
    } else if (lost_) {
      AskNobody();
    } else {
      WatchProgress();
    }
    if (HasToDeliver()) {
      engine.release();
      EngineLock deliver_after(*this, std::adopt_lock);
    }
  }
}

int QueuePair::PostReceive(ibv_recv_wr* list, ibv_recv_wr** bad) {
  if (state() == IBV_QPS_RESET || options_.shared_receives || options_.xrc || options_.type == IBV_QPT_XRC_SEND) {
    *bad = list;
    return EINVAL;
  }
  const int error = responder_.Post(list, bad);
  if (state() == IBV_QPS_ERR) Ring();  // to flush what was just posted
  return error;
}

void QueuePair::Destroy() {
  {
    EngineLock engine(*this);
    destroyed_ = true;
    AcceptWhatCame();
    if (connection_ != nullptr) Fail(/*orderly=*/true);
    SetState(IBV_QPS_RESET);
    ForgetRefusals();
  }
  if (roce_) peers_->Forget(number_);
  { std::lock_guard wait_for_upcalls(upcall_mutex_); }
  {
    std::lock_guard lock(attach_mutex_);
    options_.send_cq->Detach(this);
    options_.receive_cq->Detach(this);
  }
  DetachAll();
  options_.send_cq->Forget(number_);
  options_.receive_cq->Forget(number_);
  adapter_.ForgetQueuePair(number_);
  if (roce_) peers_->Release(number_);
  options_.pd->users.fetch_sub(1);
  options_.send_cq->users.fetch_sub(1);
  options_.receive_cq->users.fetch_sub(1);
  if (options_.shared_receives) options_.shared_receives->users.fetch_sub(1);
}

int QueuePair::Disconnect() {
  EngineLock engine(*this);
  if (connection_ == nullptr) return ENOTCONN;
  if (connection_->closing) return 0;
  AcceptWhatCame();
  if (connection_ == nullptr) return 0;
  connection_->closing = true;
  connection_->last_to_send = sends().posted();
  if (state() == IBV_QPS_RTS) SetState(IBV_QPS_SQD);
  Transmit();
  FinishDisconnect();
  CheckStream();
  return 0;
}

}  // namespace weft::sim
