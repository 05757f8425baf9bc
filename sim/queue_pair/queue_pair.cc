#include "sim/queue_pair/queue_pair.h"

#include <infiniband/weft.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/settings.h"
#include "sim/device/limits.h"
#include "sim/queue_pair/attributes.h"
#include "sim/queue_pair/transitions.h"
#include "sim/queues/names.h"

namespace weft::sim {
namespace {

constexpr std::chrono::microseconds kExitPause{20};  // between two looks at whether the engine is free
// How often a request that took memory away looks whether a peer is through with it that was slow.
constexpr std::chrono::milliseconds kRevocationLook{1};

WindowOwner NextWindowOwner() {
  static std::atomic<WindowOwner> last{kNoWindowOwner};
  return ++last;
}

// The unreliable connection has no answers (InfiniBand specification, volume 1, table 37).
bool TypeHas(ibv_qp_type type, ibv_wr_opcode opcode) {
  const bool answered = opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  return type != IBV_QPT_UC || !answered;
}

// The asynchronous event that news is; nullopt: it is for who manages the connection.
std::optional<ibv_event_type> EventOf(News news) {
  switch (news) {
    case News::kEstablished:
    case News::kDisconnected:
    case News::kNeverEstablished:
      return std::nullopt;
    case News::kFatal:
      return IBV_EVENT_QP_FATAL;
    case News::kAccessError:
      return IBV_EVENT_QP_ACCESS_ERR;
    case News::kRequestError:
      return IBV_EVENT_QP_REQ_ERR;
    case News::kLastReceive:
      return IBV_EVENT_QP_LAST_WQE_REACHED;
    case News::kCommunication:
      return IBV_EVENT_COMM_EST;
    case News::kDrained:
      return IBV_EVENT_SQ_DRAINED;
  }
  return std::nullopt;
}

}  // namespace

// Holds the engine; on release delivers what has to be said to others without locks, and answers a doorbell that rang meanwhile.
class QueuePair::EngineLock {
 public:
  explicit EngineLock(QueuePair& qp) : qp_(qp), lock_(qp.engine_mutex_) {}
  EngineLock(QueuePair& qp, std::try_to_lock_t) : qp_(qp), lock_(qp.engine_mutex_, std::try_to_lock) {}
  EngineLock(QueuePair& qp, std::adopt_lock_t) : qp_(qp), lock_(qp.engine_mutex_, std::adopt_lock) {}
  ~EngineLock() {
    if (!lock_.owns_lock()) return;
    if (!qp_.HasToDeliver()) [[likely]] {
      lock_.unlock();
    } else {
      while (qp_.requester_.revocation_waits()) qp_.CarryOutRevocation(lock_);
      const std::vector<News> news = std::exchange(qp_.news_, {});
      const std::shared_ptr<ConnectionObserver> observer = qp_.observer_;
      const std::shared_ptr<Connection> ended = std::move(qp_.ended_);
      lock_.unlock();
      qp_.Deliver(news, observer.get());
    }
    if (qp_.doorbell_.load(std::memory_order_seq_cst)) qp_.Ring();
  }
  EngineLock(const EngineLock&) = delete;
  EngineLock& operator=(const EngineLock&) = delete;

  bool owns_lock() const { return lock_.owns_lock(); }

 private:
  QueuePair& qp_;
  std::unique_lock<Mutex> lock_;
};

QueuePair::QueuePair(Adapter& adapter, PeerFinder* peers, uint32_t number, QueuePairOptions options)
    : adapter_(adapter),
      peers_(peers),
      number_(number),
      memory_user_(MemoryUser::QueuePair(number_, NextWindowOwner())),
      roce_(adapter.settings().persona == Persona::kRoce),
      options_(std::move(options)),
      drivers_(options_),
      completer_(number_, counters_),
      requester_(adapter_.memory(), options_, memory_user_, roce_, completer_),
      responder_(adapter_.memory(), options_, memory_user_, completer_),
      patience_(
          *this, [this] { return Look(); }, [this] { return Patience::LimitOf(attributes_, lost_); },
          [this] {
            const SendEntry& oldest = requester_.oldest();
            LogWarning(Format("qp 0x%x: no answer from %s to work request %llu (%s); the queue pair is in error", number_,
                              PeerName().c_str(), static_cast<unsigned long long>(oldest.id), NameOf(oldest.opcode)));
            OnOver(/*orderly=*/false, IBV_WC_RETRY_EXC_ERR);
          }) {
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

transport::Network& QueuePair::network() const { return adapter_.network(); }

// --- posting ---

int QueuePair::PostSend(ibv_send_wr* list, ibv_send_wr** bad, bool all_or_nothing) {
  SendQueue& sends = requester_.queue();
  const ibv_qp_state state = this->state();
  if (state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR || options_.xrc) {
    *bad = list;
    return EINVAL;
  }
  int error = 0;
  bool ring = true, arm = false, answers = false;
  {
    std::lock_guard lock(sends.post_mutex());
    unsigned flags = 0;
    uint64_t bytes = 0;
    uint32_t staged = 0;
    for (; list != nullptr; list = list->next) {
      error = TypeHas(options_.type, list->opcode) ? sends.Stage(*list, options_.signal_all, is_roce(), staged) : EINVAL;
      if (error != 0) {
        *bad = list;
        break;
      }
      if (options_.type == IBV_QPT_XRC_SEND) sends.entry(sends.posted() + staged).request.target = list->qp_type.xrc.remote_srqn;
      flags |= list->send_flags;
      bytes += sends.entry(sends.posted() + staged).request.length;
      ++staged;
    }
    if (staged == 0 || (error != 0 && all_or_nothing)) return error;
    sends.Publish(staged);
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
  adapter_.network().RunAt(network().Now() + DoorbellBatching::kFlushAfter, [weak = weak_from_this(), posted = requester_.queue().posted()] {
    if (auto self = weak.lock()) self->OnFlushTimer(posted);
  });
}

void QueuePair::OnFlushTimer(uint64_t posted_before) {
  Ring();
  {
    std::lock_guard lock(requester_.queue().post_mutex());
    flush_timer_armed_ = requester_.queue().posted() != posted_before;  // still posting: stay awake, that needs no wake-up
    if (!flush_timer_armed_) return;
  }
  ArmFlushTimer();
}

void QueuePair::FlushDeferred() {
  if (!batching_.pending()) return;
  {
    std::lock_guard lock(requester_.queue().post_mutex());
    batching_.Clear();
  }
  Ring();
}

void QueuePair::Ring() {
  do {
    std::unique_lock engine(engine_mutex_, std::try_to_lock);
    if (!engine.owns_lock()) {
      doorbell_.store(true, std::memory_order_seq_cst);
      if (!engine.try_lock()) return;  // its owner sees the doorbell after it lets go
    }
    if (doorbell_.load(std::memory_order_seq_cst)) doorbell_.store(false, std::memory_order_seq_cst);
    if (connection_ != nullptr) {
      connection_->Send();
      patience_.Watch();
    } else if (state() == IBV_QPS_ERR) {
      FlushQueues();
    } else if (lost_) {
      AskNobody();
    } else {
      patience_.Watch();
    }
    if (HasToDeliver()) {
      engine.release();
      EngineLock deliver_after(*this, std::adopt_lock);
    }
  } while (doorbell_.load(std::memory_order_seq_cst));
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

// --- the connection ---

int QueuePair::Establish(std::unique_ptr<llp::Channel> channel, EstablishOptions options) {
  transport::WatchId watch;
  {
    EngineLock engine(*this);
    if (destroyed_ || connection_ != nullptr || options.dialled != dialled_ || lost_) return EINVAL;
    const ibv_qp_state state = this->state();
    if (options.dialled ? state != IBV_QPS_RTR && state != IBV_QPS_RTS && state != IBV_QPS_SQD
                        : state != IBV_QPS_INIT && state != IBV_QPS_RTR) {
      return EINVAL;
    }
    observer_ = std::move(options.observer);
    requester_.ForgetFailure();
    completer_.Clear();
    if (!options.dialled) {
      // As the kernel's connection manager sets them for its queue pairs, but for a receiver timer (code 12: 0.64 ms) that suits a
      // software RNIC.
      attributes_.rnr_retry = options.rnr_retry;
      attributes_.retry_cnt = options.retry_count;
      attributes_.timeout = options.ack_timeout;
      attributes_.min_rnr_timer = 12;
      SetState(IBV_QPS_RTS);
    }
    last_peer_ = channel->PeerAddress();
    const ConnectionParts parts{number_, roce_, options_, attributes_, counters_, completer_, requester_, responder_};
    connection_ = std::make_shared<Connection>(parts, static_cast<ConnectionUser&>(*this), std::move(channel), options.terms);
    const std::shared_ptr<Connection> connection = connection_;  // which may be over at once
    lent_ = connection->lent();
    connection->Start(std::shared_ptr<llp::ChannelUser>(shared_from_this(), this),
                      std::shared_ptr<transport::ReadyHandler>(shared_from_this(), this), CaptureComment());
    watch = connection->watch();
    patience_.Watch();
  }
  drivers_.Attach(shared_from_this(), watch);
  return 0;
}

bool QueuePair::seeks_peer() {
  EngineLock engine(*this);
  return dialled_ && !destroyed_ && !lost_ && connection_ == nullptr && state() != IBV_QPS_ERR;
}

void QueuePair::LosePeer() {
  EngineLock engine(*this);
  if (!dialled_ || destroyed_ || lost_ || connection_ != nullptr || state() == IBV_QPS_ERR) return;
  patience_.Stop();
  lost_ = true;
  AskNobody();
}

int QueuePair::Disconnect() {
  EngineLock engine(*this);
  if (connection_ == nullptr) return ENOTCONN;
  if (connection_->closing()) return 0;
  connection_->AcceptWhatCame();
  if (connection_ == nullptr) return 0;
  if (state() == IBV_QPS_RTS) SetState(IBV_QPS_SQD);
  connection_->Disconnect();
  return 0;
}

void QueuePair::OnReady(transport::Interest) {
  EngineLock engine(*this);
  if (connection_ == nullptr) return;
  connection_->Step(/*eager=*/true);
  patience_.Watch();
}

void QueuePair::OnWake() {
  EngineLock engine(*this);
  if (connection_ == nullptr) return;
  connection_->OnWake();
  patience_.Watch();
}

void QueuePair::DriveInline(bool spinning) {
  bool hand_on = false;
  {
    EngineLock engine(*this, std::try_to_lock);
    if (!engine.owns_lock()) return turned_away_.Note();  // who has it may have a copy half done
    if (connection_ == nullptr) return;
    if (spinning && connection_->idle()) {
      hand_on = connection_->Lend();
    } else {
      // A program that spins acknowledges with its answer, or at its next poll. One that does not may not come back.
      const bool came = connection_->StepForPoll(spinning, /*eager=*/!spinning);
      patience_.Watch();
      if (spinning && connection_ != nullptr) hand_on = connection_->Lend() && !came;
    }
  }
  if (hand_on) sched_yield();
}

void QueuePair::EndDrive() {
  EngineLock engine(*this);
  if (connection_ != nullptr) connection_->EndLend();
}

void QueuePair::OnDriven(transport::Interest, bool spinning) {
  EngineLock engine(*this, std::try_to_lock);
  if (!engine.owns_lock()) return turned_away_.Note();
  if (connection_ == nullptr) return;
  // What the program polls of XRC's is the queue of the shared receives, which has no place for an errand of ours.
  connection_->StepForPoll(spinning, /*eager=*/!spinning || options_.xrc != nullptr);
  patience_.Watch();
}

bool QueuePair::RunErrand() {
  FlushDeferred();
  EngineLock engine(*this, std::try_to_lock);
  if (!engine.owns_lock()) return false;
  if (connection_ != nullptr && connection_->RunErrand()) patience_.Watch();
  return true;
}

void QueuePair::OnExit(std::chrono::steady_clock::time_point until) {
  std::unique_lock engine(engine_mutex_, std::try_to_lock);
  // The network's thread, or another of the program's. It may be the very one that ends the process, in the handler of a signal.
  while (!engine.owns_lock() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kExitPause);
    engine.try_lock();
  }
  if (engine.owns_lock() && connection_ != nullptr) connection_->OnExit();
}

std::shared_ptr<llp::LentMemory> QueuePair::ForgetRegion(const RegionInfo& gone) {
  EngineLock engine(*this);
  if (connection_ != nullptr) connection_->ForgetRegion(gone, std::nullopt);
  const bool settled = lent_ == nullptr || lent_->Settled(reinterpret_cast<const void*>(gone.address), gone.length);
  return settled ? nullptr : lent_;
}

std::shared_ptr<llp::LentMemory> QueuePair::Lent() {
  EngineLock engine(*this);
  return lent_;
}

void QueuePair::CarryOutRevocation(std::unique_lock<Mutex>& engine) {
  const Requester::Revocation now = requester_.BeginRevocation();
  Adapter::Lent unsettled;
  if (connection_ != nullptr) connection_->CloseToPeer(now.gone);
  if (now.gone.owner != memory_user_.owner) {
    engine.unlock();
    unsettled = adapter_.ForgetRegion(now.gone, /*but=*/this);
    engine.lock();
  }
  if (lent_ != nullptr) unsettled.push_back(lent_);
  FinishRevocation(now, std::move(unsettled));
}

// Nobody waits here: this may be the thread that others wait for.
void QueuePair::FinishRevocation(const Requester::Revocation& revocation, Adapter::Lent unsettled) {
  std::erase_if(unsettled, [&](const auto& lent) { return lent->Settled(reinterpret_cast<const void*>(revocation.gone.address), revocation.gone.length); });
  if (!unsettled.empty() && connection_ != nullptr) {
    RunAfter(kRevocationLook, [this, revocation, unsettled = std::move(unsettled)]() mutable { FinishRevocation(revocation, std::move(unsettled)); });
    return;
  }
  requester_.EndRevocation(revocation);
  if (connection_ != nullptr) connection_->ForgetRegion(revocation.gone, revocation.count);
  if (connection_ != nullptr) connection_->Send();
}

void QueuePair::ApplyFaults() {
  EngineLock engine(*this);
  if (connection_ == nullptr) return;
  connection_->ApplyFaults();
  patience_.Watch();
}

// --- what the connection says ---

transport::TimerId QueuePair::RunAfter(transport::Duration delay, std::function<void()> work) {
  return network().RunAt(network().Now() + delay, [weak = weak_from_this(), work = std::move(work)] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    EngineLock engine(*self);
    work();
  });
}

void QueuePair::RunWhenFree(transport::Duration delay, transport::Duration otherwise, std::function<void()> work) {
  network().RunAt(network().Now() + delay, [weak = weak_from_this(), otherwise, work = std::move(work)]() mutable {
    const auto self = weak.lock();
    if (self == nullptr) return;
    EngineLock engine(*self, std::try_to_lock);
    if (!engine.owns_lock()) return self->RunWhenFree(otherwise, otherwise, std::move(work));  // do not stand in its way
    work();
  });
}

void QueuePair::OnTarget(const std::shared_ptr<CompletionQueue>& completions) {
  drivers_.AttachLater(completions, shared_from_this(), connection_->watch());
}

void QueuePair::OnOver(bool orderly, std::optional<ibv_wc_status> blame, std::optional<uint64_t> at) {
  CloseConnection(orderly);
  const bool was_in_error = state() == IBV_QPS_ERR;
  if (!was_in_error) SetState(IBV_QPS_ERR);
  FlushQueues(blame, at);
  patience_.Stop();
  if (!was_in_error && options_.shared_receives) Tell(News::kLastReceive);
}

void QueuePair::OnTerminating(std::optional<ibv_wc_status> blame, std::optional<uint64_t> at) {
  if (state() == IBV_QPS_ERR) return;
  SetState(IBV_QPS_ERR);
  FlushQueues(blame, at);
  patience_.Stop();
  if (options_.shared_receives) Tell(News::kLastReceive);
}

void QueuePair::OnLost(bool orderly) {
  if (!dialled_) {
    const bool retried = connection_->reliable() && !orderly;  // iWARP has no retries that could be exceeded
    return OnOver(orderly, retried ? std::optional(IBV_WC_RETRY_EXC_ERR) : std::nullopt);
  }
  // As on InfiniBand: a queue pair learns that its peer is gone when it wants something from it.
  patience_.Stop();
  const bool unused = connection_->unused();
  CloseConnection(orderly);
  if (unused) {
    // It may have been a request that an earlier queue pair with the peer's number had given up: who has the number now is still to come.
    requester_.Rewind(requester_.queue().retired());
    return patience_.Watch();
  }
  lost_ = true;
  AskNobody();
}

void QueuePair::AskNobody() {
  if (options_.type != IBV_QPT_UC) return patience_.Watch();
  // What an unreliable connection sends is done when it is sent, whoever may hear it.
  if (state() == IBV_QPS_RTS) requester_.CompleteAll();
}

std::optional<Patience::Signs> QueuePair::Look() const {
  if (!roce_ || requester_.empty() || state() != IBV_QPS_RTS || (connection_ != nullptr && !connection_->reliable())) return std::nullopt;
  return Patience::Signs{.progress = connection_ != nullptr ? connection_->progress() : 0, .heard = counters_.bytes_received.value()};
}

void QueuePair::CloseConnection(bool orderly) {
  if (connection_ == nullptr) return;
  connection_->Close(orderly);
  ended_ = std::move(connection_);  // from which the call may come
}

void QueuePair::FlushQueues(std::optional<ibv_wc_status> blame, std::optional<uint64_t> at) {
  requester_.Flush(blame, at);
  responder_.Flush();
}

void QueuePair::TellOfDrain() {
  if (state() != IBV_QPS_SQD || !requester_.all_begun_retired()) return;
  drain_told_ = true;
  Tell(News::kDrained);
}

std::string QueuePair::PeerName() const {
  std::string address = last_peer_.family() != 0 ? last_peer_.ToString() : "a peer that it never reached";
  return dialled_ ? Format("qp 0x%x at %s", attributes_.dest_qp_num, address.c_str()) : address;
}

void QueuePair::Deliver(const std::vector<News>& all, ConnectionObserver* observer) {
  std::lock_guard delivering(news_mutex_);
  for (const News news : all) {
    if (const auto event = EventOf(news)) {
      if (TraceEnabled()) Trace(Format("qp 0x%x: asynchronous event %s", number_, NameOf(*event)));
      if (!destroyed_.load() && options_.async) options_.async->OnAsyncEvent(*event, options_.owner);
    } else if (observer != nullptr && news == News::kEstablished) {
      observer->OnEstablished();
    } else if (observer != nullptr) {
      observer->OnDisconnected(/*was_established=*/news == News::kDisconnected);
    }
  }
}

// --- states ---

int QueuePair::Modify(const ibv_qp_attr& attributes, int mask) {
  const std::shared_ptr<llp::LentMemory> lent = Lent();
  const int error = roce_ ? ModifyRoce(attributes, mask) : ModifyIwarp(attributes, mask);
  // What the peer has been denied, or the end of the connection has, it is not at any more when the program goes on.
  if (error == 0 && lent != nullptr) lent->Await(nullptr, SIZE_MAX);
  return error;
}

void QueuePair::SetState(ibv_qp_state to) {
  const ibv_qp_state from = state_.exchange(to, std::memory_order_seq_cst);
  if (from != to && TraceEnabled()) Trace(Format("qp 0x%x: %s -> %s", number_, NameOf(from), NameOf(to)));
}

void QueuePair::Reset() {
  if (connection_ != nullptr) OnOver(/*orderly=*/false);
  requester_.Clear();
  responder_.Clear();
  options_.send_cq->Forget(number_);
  options_.receive_cq->Forget(number_);
  SetState(IBV_QPS_RESET);
  observer_.reset();
  news_.clear();
  ended_.reset();
  responder_.ForgetTargets();
  lost_ = dialled_ = false;
  patience_.Stop();
}

uint32_t QueuePair::ConnectionOptions() {
  if (!roce_ || options_.type != IBV_QPT_RC) return 0;
  EngineLock engine(*this);
  const ConnectionTerms own{.delivery = delivery(), .atomics = offers_atomics()};
  const ConnectionTerms& terms = connection_ == nullptr ? own : connection_->terms();
  const bool reliable = terms.delivery == rdmap::Delivery::kReliable;
  return (reliable ? WEFT_ECE_INFINIBAND_SEMANTICS : 0) | (reliable || terms.atomics ? WEFT_ECE_ATOMICS : 0);
}

int QueuePair::SetConnectionOptions(uint32_t* options) {
  EngineLock engine(*this);
  if (connection_ != nullptr || (state() != IBV_QPS_RESET && state() != IBV_QPS_INIT)) return EINVAL;
  *options &= roce_ && options_.type == IBV_QPT_RC ? WEFT_ECE_INFINIBAND_SEMANTICS | WEFT_ECE_ATOMICS : 0;
  if (options_.type != IBV_QPT_RC) return 0;
  plain_ = (*options & WEFT_ECE_INFINIBAND_SEMANTICS) == 0;
  without_atomics_ = (*options & WEFT_ECE_ATOMICS) == 0;
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
    if (int error = ChangeState(attributes.qp_state)) return error;
  }
  if (mask & IBV_QP_ACCESS_FLAGS) attributes_.qp_access_flags = attributes.qp_access_flags;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) attributes_.max_dest_rd_atomic = attributes.max_dest_rd_atomic;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) attributes_.max_rd_atomic = attributes.max_rd_atomic;
  return 0;
}

// Transitions of an iWARP queue pair as a program may ask for them; to RTR and RTS it comes by rdma_cm only.
int QueuePair::ChangeState(ibv_qp_state to) {
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
      SetState(IBV_QPS_SQD);
      connection_->Disconnect();
      return 0;
    case IBV_QPS_ERR:
      if (from == IBV_QPS_RESET) return EINVAL;
      if (from != IBV_QPS_ERR) EnterErrorState();
      return 0;
    default:
      return EINVAL;
  }
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
      choice = ChoosePeer(attributes, options_, delivery());
      if (!choice) return EINVAL;
    }
    TakeAttributes(attributes, mask, attributes_);
    if (connection_ != nullptr) connection_->AttributesChanged();
    forget = to == IBV_QPS_RESET || to == IBV_QPS_ERR;
    if (from == IBV_QPS_RTR && to == IBV_QPS_RTS && dialled_) send_number = attributes_.sq_psn;
    EnterState(from, to);
  }
  if (forget) peers_->Forget(number_);
  if (choice) peers_->Connect(shared_from_this(), std::move(*choice));
  if (send_number) peers_->Dial(number_, *send_number);
  return 0;
}

// By the program. An adapter would have taken before what lies in the socket: the acknowledgement of a request of ours, often.
void QueuePair::EnterErrorState() {
  if (connection_ != nullptr) connection_->AcceptWhatCame();
  if (state() != IBV_QPS_ERR) OnOver(/*orderly=*/true);
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
        EnterErrorState();
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
    attributes->max_dest_rd_atomic = static_cast<uint8_t>(std::min<uint32_t>(connection_->terms().outcome.ird, 255));
    attributes->max_rd_atomic = static_cast<uint8_t>(std::min<uint32_t>(connection_->terms().outcome.ord, 255));
  }
  init->cap = options_.capabilities;
  init->qp_type = options_.type;
  init->sq_sig_all = options_.signal_all;
}

// --- the end, and what it says of itself ---

void QueuePair::Destroy() {
  Drivers::Queues others;
  {
    EngineLock engine(*this);
    destroyed_ = true;
    if (connection_ != nullptr) connection_->AcceptWhatCame();
    if (connection_ != nullptr) OnOver(/*orderly=*/true);
    SetState(IBV_QPS_RESET);
    patience_.Stop();
  }
  if (roce_) peers_->Forget(number_);
  if (const auto lent = Lent()) lent->Await(nullptr, SIZE_MAX);
  { std::lock_guard wait_for_news(news_mutex_); }
  {
    EngineLock engine(*this);
    others = drivers_.TakeOthers();
    responder_.ForgetTargets();
  }
  drivers_.Detach(this, others);
  options_.send_cq->Forget(number_);
  options_.receive_cq->Forget(number_);
  adapter_.ForgetQueuePair(number_);
  if (roce_) peers_->Release(number_);
  options_.pd->users.fetch_sub(1);
  options_.send_cq->users.fetch_sub(1);
  options_.receive_cq->users.fetch_sub(1);
  if (options_.shared_receives) options_.shared_receives->users.fetch_sub(1);
}

void QueuePair::FailFatally(const std::string& device) {
  if (options_.device != device) return;
  EngineLock engine(*this);
  if (state() == IBV_QPS_RESET || state() == IBV_QPS_ERR) return;
  OnOver(/*orderly=*/false);
}

std::string QueuePair::CaptureComment() const {
  if (ProcessSettings().pcap.empty()) return {};
  return Format("Weft: queue pair 0x%x of process %d, device %s", number_, static_cast<int>(getpid()), options_.device.c_str());
}

QueuePairSnapshot QueuePair::Snapshot() {
  QueuePairSnapshot snapshot{.number = number_,
                             .type = options_.type,
                             .state = state(),
                             .device = options_.device,
                             .sends_posted = requester_.queue().posted(),
                             .sends_completed = requester_.queue().retired(),
                             .receives_posted = responder_.queue().posted(),
                             .receives_completed = responder_.queue().completed(),
                             .bytes_sent = counters_.bytes_sent.value(),
                             .bytes_received = counters_.bytes_received.value() + counters_.bytes_fetched.value(),
                             .errors = counters_.errors.value(),
                             .retries = counters_.retries.value(),
                             .rnr = counters_.rnr.value()};
  EngineLock engine(*this);
  if (last_peer_.family() != 0) snapshot.peer = last_peer_.ToString();
  if (connection_ != nullptr) snapshot.wire = connection_->wire();
  return snapshot;
}

}  // namespace weft::sim
