#ifndef SIM_QUEUE_PAIR_QUEUE_PAIR_H_
#define SIM_QUEUE_PAIR_QUEUE_PAIR_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/turned_away.h"
#include "llp/channel.h"
#include "sim/connection/connection.h"
#include "sim/connection/patience.h"
#include "sim/queues/adapter.h"
#include "sim/queues/any_queue_pair.h"
#include "sim/queue_pair/doorbell_batching.h"
#include "sim/queue_pair/drivers.h"
#include "sim/queue_pair/peer.h"
#include "sim/queues/queue_pair_options.h"
#include "transport/network.h"

namespace weft::sim {

// Told about the life of a connection after its queue pair took it over. Called without locks held, from the progress thread
// or from within a verbs call.
class ConnectionObserver {
 public:
  virtual ~ConnectionObserver() = default;
  virtual void OnEstablished() = 0;   // responder in peer-to-peer mode: the RTR came
  // Once. `was_established`: false if the responder's RTR never came.
  virtual void OnDisconnected(bool was_established) = 0;
};

// A connection whose start-up is over.
struct EstablishOptions {
  ConnectionTerms terms;
  bool dialled = false;  // the program connects by ibv_modify_qp; otherwise by rdma_cm
  uint8_t rnr_retry = 7, retry_count = 7, ack_timeout = 18;  // rdma_cm's: for ever, 7 times 1 s
  std::shared_ptr<ConnectionObserver> observer;
};

// A connected queue pair (ibv_qp of type RC, UC or one of XRC's two) and, once connected, the owner of its socket. Thread safe.
//
// Locks, outermost first: engine_mutex_ (state, connection, protocol; held for one step of non-blocking I/O), the post mutexes of
// the two queues (producers only), the completion queue's, the shared receive queue's (leaves). Posting never waits for the engine: it rings the doorbell, and
// whoever has the engine looks at the doorbell before and after letting go.
class QueuePair final : public std::enable_shared_from_this<QueuePair>,
                        public AnyQueuePair,
                        private ConnectionUser,
                        private llp::ChannelUser,
                        private transport::ReadyHandler {
 public:
  // `peers`: finds peers that programs name by ibv_modify_qp; null in the iWARP persona. Both outlive it.
  QueuePair(Adapter& adapter, PeerFinder* peers, uint32_t number, QueuePairOptions options);
  ~QueuePair() override;

  ibv_qp_type type() const override { return options_.type; }
  uint32_t number() const override { return number_; }
  uint32_t pd_id() const { return options_.pd->id; }
  void* owner() const { return options_.owner; }
  const std::string& device() const { return options_.device; }
  const ibv_qp_cap& capabilities() const override { return options_.capabilities; }
  ibv_qp_state state() const { return state_.load(std::memory_order_seq_cst); }
  bool is_roce() const { return roce_; }
  // What it asks its peer for, if that is Weft as well.
  rdmap::Delivery delivery() const {
    if (!roce_ || plain_) return rdmap::Delivery::kPlain;
    return options_.type == IBV_QPT_UC ? rdmap::Delivery::kUnreliable : rdmap::Delivery::kReliable;
  }
  // ibv_query_ece(3), ibv_set_ece(3): WEFT_ECE_* (infiniband/weft.h).
  uint32_t ConnectionOptions() const;
  // What it does not have is taken out of `*options`. EINVAL: it is too late.
  int SetConnectionOptions(uint32_t* options);

  // The verbs: 0 or a positive errno with `*bad` at the first work request not posted. EINVAL: state, opcode, flags,
  // too many SGEs, inline too long; ENOMEM: queue full; EOPNOTSUPP: an opcode that this RNIC does not have.
  // Those before it are posted, or with `all_or_nothing` (ibv_wr_complete) none is.
  int PostSend(ibv_send_wr* list, ibv_send_wr** bad, bool all_or_nothing = false) override;
  int PostReceive(ibv_recv_wr* list, ibv_recv_wr** bad) override;
  // ibv_modify_qp / ibv_query_qp. EINVAL leaves the queue pair as it was.
  int Modify(const ibv_qp_attr& attributes, int mask) override;
  void Query(ibv_qp_attr* attributes, ibv_qp_init_attr* init) override;  // `init`'s cq and srq pointers are the caller's
  // Ends the connection, drops its completions and lets go of everything. Last call.
  void Destroy() override;

  // Takes over `channel` after start-up and goes to RTS. EINVAL: not in INIT (or RTR).
  int Establish(std::unique_ptr<llp::Channel> channel, EstablishOptions options);
  // The connection that it had was of no use to either end, and ended: it may have another one with the peer that its program named.
  bool seeks_peer();
  // That peer is known not to be there any more, as if the connection with it had been lost.
  void LosePeer();
  // Ends the connection in order: what was posted so far goes out, then FIN. ENOTCONN.
  int Disconnect();

  // For completion queues that were polled empty: one step of the connection on the caller's thread, if nobody else is at it.
  // `spinning`: it will be called again at once, so that the network need not watch the connection meanwhile.
  void DriveInline(bool spinning) override;
  // Sends what was posted and not sent yet for the sake of batching.
  void FlushDeferred() override;
  void EndDrive() override;
  bool RunErrand() override;
  transport::Network& network() const override;

  // Acknowledges what came: a program may end right after its last completion.
  void OnExit(std::chrono::steady_clock::time_point until) override;

  // The region goes away (see Adapter::ForgetRegion).
  std::shared_ptr<llp::LentMemory> ForgetRegion(const RegionInfo& gone) override;

  QueuePairSnapshot Snapshot() override;
  std::string CaptureComment() const;  // names the queue pair for who reads a capture; empty when there is none
  void ApplyFaults() override;
  void FailFatally(const std::string& device) override;

 private:
  class EngineLock;

  // transport::ReadyHandler
  void OnReady(transport::Interest ready) override;
  void OnDriven(transport::Interest ready, bool spinning) override;

  // llp::ChannelUser
  void OnWake() override;

  // EngineTimers
  transport::TimerId RunAfter(transport::Duration delay, std::function<void()> work) override;
  void RunWhenFree(transport::Duration delay, transport::Duration otherwise, std::function<void()> work) override;

  // ConnectionUser; with the engine held, as everything below, unless it says otherwise.
  void Tell(News news) override { news_.push_back(news); }
  bool may_begin() const override { return !roce_ || state() == IBV_QPS_RTS; }
  bool awaits_communication() const override { return dialled_ && state() == IBV_QPS_RTR; }
  bool outlives_peer() const override { return dialled_; }
  void OnRetired() override {
    if (!drain_told_) TellOfDrain();
  }
  bool AddErrand() override { return drivers_.AddErrand(); }
  void OnTarget(const std::shared_ptr<CompletionQueue>& completions) override;
  void OnOver(bool orderly, std::optional<ibv_wc_status> blame = std::nullopt, std::optional<uint64_t> at = std::nullopt) override;
  void OnLost(bool orderly) override;
  void OnTerminating(std::optional<ibv_wc_status> blame, std::optional<uint64_t> at) override;
  std::string PeerName() const override;

  void Ring();                                // without; after posting
  void ArmFlushTimer();                       // without
  void OnFlushTimer(uint64_t posted_before);  // without
  // Something is to be said, or done, without the engine.
  bool HasToDeliver() const { return !news_.empty() || requester_.revocation_waits(); }
  void Deliver(const std::vector<News>& news, ConnectionObserver* observer);  // without
  // What a request takes away from peers is forgotten by other queue pairs, for which the engine is let go. It is done when no peer writes there any more.
  void CarryOutRevocation(std::unique_lock<Mutex>& engine);
  void FinishRevocation(const Requester::Revocation& revocation, Adapter::Lent unsettled);
  // Without: what the peer of this connection, or of the last, could reach by itself.
  std::shared_ptr<llp::LentMemory> Lent();

  int ModifyIwarp(const ibv_qp_attr& attributes, int mask);  // without
  int ModifyRoce(const ibv_qp_attr& attributes, int mask);   // without
  int ChangeState(ibv_qp_state to);
  void EnterErrorState();
  void EnterState(ibv_qp_state from, ibv_qp_state to);
  void SetState(ibv_qp_state to);
  void Reset();
  void CloseConnection(bool orderly);
  void FlushQueues(std::optional<ibv_wc_status> blame = std::nullopt, std::optional<uint64_t> at = std::nullopt);
  void TellOfDrain();
  void AskNobody();  // the peer is gone, and the program may want something of it
  std::optional<Patience::Signs> Look() const;

  Adapter& adapter_;
  PeerFinder* const peers_;
  const uint32_t number_;
  const MemoryUser memory_user_;
  const bool roce_;
  std::atomic<bool> plain_ = false;  // for all that, it asks for nothing
  QueuePairOptions options_;
  QueuePairCounters counters_;  // written with the engine held
  // Pairs with the queues' post mutexes: who posts looks at it after that, who flushes sets it and then takes them (AwaitProducers).
  std::atomic<ibv_qp_state> state_{IBV_QPS_RESET};
  // Pairs with engine_mutex_ (base/mutex.h): Ring() stores it and tries for the engine, who has that lets go of it and looks here.
  std::atomic<bool> doorbell_{false};
  TurnedAway turned_away_;  // polls
  Drivers drivers_;

  // Guarded by the post mutex of the send queue.
  DoorbellBatching batching_;
  bool flush_timer_armed_ = false;

  // Held while others are called, so that Destroy() can wait for that; recursive because they may call in again.
  std::recursive_mutex news_mutex_;
  std::atomic<bool> destroyed_{false};

  mutable Mutex engine_mutex_;  // guards everything below
  Completer completer_;
  Requester requester_;
  Responder responder_;
  Patience patience_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<Connection> ended_;  // the one before, until nothing of it can be running
  std::shared_ptr<llp::LentMemory> lent_;  // of the connection that it has or had last
  transport::SocketAddress last_peer_;
  std::vector<News> news_;
  ibv_qp_attr attributes_{};
  std::shared_ptr<ConnectionObserver> observer_;
  bool dialled_ = false;    // the program connects it by ibv_modify_qp
  bool lost_ = false;       // ... and the connection that it had is gone
  bool drain_told_ = true;  // IBV_EVENT_SQ_DRAINED
};

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_QUEUE_PAIR_H_
