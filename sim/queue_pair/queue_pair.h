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

// Learns about a connection after a queue pair has taken it over. Called without locks, from the progress thread or
// from within a verbs call.
class ConnectionObserver {
 public:
  virtual ~ConnectionObserver() = default;
  virtual void OnEstablished() = 0;   // responder in peer-to-peer mode: the RTR has arrived
  // Called once. `was_established`: false if the responder's RTR never arrived.
  virtual void OnDisconnected(bool was_established) = 0;
};

// Options of a connection whose start-up is complete.
struct EstablishOptions {
  ConnectionTerms terms;
  bool dialled = false;  // the program connects by ibv_modify_qp; otherwise by rdma_cm
  uint8_t rnr_retry = 7, retry_count = 7, ack_timeout = 18;  // rdma_cm's: for ever, 7 times 1 s
  std::shared_ptr<ConnectionObserver> observer;
};

// A connected queue pair (ibv_qp of type RC, UC or one of the two XRC types). Once connected, it owns its channel.
// Thread safe.
//
// Locks, outermost first: engine_mutex_ (state, connection, protocol; held for one step of non-blocking I/O), the post
// mutexes of the two queues (producers only), the completion queue's, the shared receive queue's (leaves). Posting
// never waits for the engine: it sets the doorbell. The thread that has the engine checks the doorbell before and after
// it releases the engine.
class QueuePair final : public std::enable_shared_from_this<QueuePair>,
                        public AnyQueuePair,
                        private ConnectionUser,
                        private llp::ChannelUser,
                        private transport::ReadyHandler {
 public:
  // `peers`: finds peers that programs name by ibv_modify_qp; null in the iWARP persona. `adapter` and `peers` outlive
  // it.
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
  // The delivery that it asks a Weft peer for.
  rdmap::Delivery delivery() const {
    if (!roce_ || plain_) return rdmap::Delivery::kPlain;
    return options_.type == IBV_QPT_UC ? rdmap::Delivery::kUnreliable : rdmap::Delivery::kReliable;
  }
  bool offers_atomics() const { return roce_ && !without_atomics_; }  // on a plain stream, too
  // ibv_query_ece(3), ibv_set_ece(3): WEFT_ECE_* (infiniband/weft.h).
  uint32_t ConnectionOptions();
  // Removes from `*options` those that are not supported. EINVAL: too late.
  int SetConnectionOptions(uint32_t* options);

  // The verbs. They return 0, or a positive errno with `*bad` at the first work request not posted. EINVAL: state,
  // opcode, flags, too many SGEs, inline data too long. ENOMEM: queue full. EOPNOTSUPP: the RNIC does not support the
  // opcode. Requests before `*bad` are posted; with `all_or_nothing` (ibv_wr_complete) none is posted.
  int PostSend(ibv_send_wr* list, ibv_send_wr** bad, bool all_or_nothing = false) override;
  int PostReceive(ibv_recv_wr* list, ibv_recv_wr** bad) override;
  // ibv_modify_qp / ibv_query_qp. After EINVAL the queue pair is unchanged.
  int Modify(const ibv_qp_attr& attributes, int mask) override;
  // Does not fill the cq and srq pointers of `init`; the caller does.
  void Query(ibv_qp_attr* attributes, ibv_qp_init_attr* init) override;
  // Ends the connection, drops its completions and releases everything. The last call.
  void Destroy() override;

  // Takes over `channel` after start-up and goes to RTS. EINVAL: not in INIT (or RTR).
  int Establish(std::unique_ptr<llp::Channel> channel, EstablishOptions options);
  // Its connection ended before either end had used it: it may get another connection with the peer that its program
  // named.
  bool seeks_peer();
  // That peer is known to be gone, as if the connection had been lost.
  void LosePeer();
  // Ends the connection in order: what was posted so far is sent, then FIN. ENOTCONN.
  int Disconnect();

  // Called by completion queues that were polled empty: one step of the connection on the caller's thread, unless
  // another thread drives it. `spinning`: the call will be repeated at once, so the network need not watch the
  // connection meanwhile.
  void DriveInline(bool spinning) override;
  // Sends requests that were deferred for batching.
  void FlushDeferred() override;
  void EndDrive() override;
  bool RunErrand() override;
  transport::Network& network() const override;

  // Acknowledges what has arrived, since a program may end right after its last completion.
  void OnExit(std::chrono::steady_clock::time_point until) override;

  // The region goes away (see Adapter::ForgetRegion).
  std::shared_ptr<llp::LentMemory> ForgetRegion(const RegionInfo& gone) override;

  QueuePairSnapshot Snapshot() override;
  // Identifies the queue pair for readers of a capture; empty if there is no capture.
  std::string CaptureComment() const;
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

  // ConnectionUser. These and everything below require the engine, unless stated otherwise.
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

  void Ring();                                // without the engine; after posting
  void ArmFlushTimer();                       // without the engine
  void OnFlushTimer(uint64_t posted_before);  // without the engine
  // Something must be reported or done after the engine is released.
  bool HasToDeliver() const { return !news_.empty() || requester_.revocation_waits(); }
  void Deliver(const std::vector<News>& news, ConnectionObserver* observer);  // without the engine
  // Makes other queue pairs release what a request revokes; releases the engine for this. The request is done when no
  // peer writes there any more.
  void CarryOutRevocation(std::unique_lock<Mutex>& engine);
  void FinishRevocation(const Requester::Revocation& revocation, Adapter::Lent unsettled);
  // Without the engine: the memory that the peer of this or of the last connection could access directly.
  std::shared_ptr<llp::LentMemory> Lent();

  int ModifyIwarp(const ibv_qp_attr& attributes, int mask);  // without the engine
  int ModifyRoce(const ibv_qp_attr& attributes, int mask);   // without the engine
  int ChangeState(ibv_qp_state to);
  void EnterErrorState();
  void EnterState(ibv_qp_state from, ibv_qp_state to);
  void SetState(ibv_qp_state to);
  void Reset();
  void CloseConnection(bool orderly);
  void FlushQueues(std::optional<ibv_wc_status> blame = std::nullopt, std::optional<uint64_t> at = std::nullopt);
  void TellOfDrain();
  void AskNobody();  // the peer is gone, and the program may need it
  std::optional<Patience::Signs> Look() const;

  Adapter& adapter_;
  PeerFinder* const peers_;
  const uint32_t number_;
  const MemoryUser memory_user_;
  const bool roce_;
  std::atomic<bool> plain_ = false;  // in spite of all that, it asks for nothing
  std::atomic<bool> without_atomics_ = false;
  QueuePairOptions options_;
  QueuePairCounters counters_;  // written with the engine held
  // Pairs with the queues' post mutexes: a thread that posts reads it while it holds one; a thread that flushes sets it
  // and then takes them (AwaitProducers).
  std::atomic<ibv_qp_state> state_{IBV_QPS_RESET};
  // Pairs with engine_mutex_ (base/mutex.h): Ring() stores it and tries to take the engine; the thread that has the
  // engine releases it and then reads this.
  std::atomic<bool> doorbell_{false};
  TurnedAway turned_away_;  // polls
  Drivers drivers_;

  // Guarded by the post mutex of the send queue.
  DoorbellBatching batching_;
  bool flush_timer_armed_ = false;

  // Held while observers are called, so that Destroy() can wait for the calls. Recursive, because they may call back.
  std::recursive_mutex news_mutex_;
  std::atomic<bool> destroyed_{false};

  mutable Mutex engine_mutex_;  // guards everything below
  Completer completer_;
  Requester requester_;
  Responder responder_;
  Patience patience_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<Connection> ended_;  // the connection before, until no call in it can be running
  std::shared_ptr<llp::LentMemory> lent_;  // of the current or last connection
  transport::SocketAddress last_peer_;
  std::vector<News> news_;
  ibv_qp_attr attributes_{};
  std::shared_ptr<ConnectionObserver> observer_;
  bool dialled_ = false;    // the program connects by ibv_modify_qp
  bool lost_ = false;       // ... and its connection was lost
  bool drain_told_ = true;  // IBV_EVENT_SQ_DRAINED was reported
};

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_QUEUE_PAIR_H_
