#ifndef SIM_QUEUE_PAIR_QUEUE_PAIR_H_
#define SIM_QUEUE_PAIR_QUEUE_PAIR_H_

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "llp/channel.h"
#include "rdmap/stream.h"
#include "sim/queues/adapter.h"
#include "sim/queues/any_queue_pair.h"
#include "sim/queues/completion_queue.h"
#include "sim/queue_pair/doorbell_batching.h"
#include "sim/memory/memory.h"
#include "sim/queue_pair/completer.h"
#include "sim/queue_pair/peer.h"
#include "sim/queue_pair/requester.h"
#include "sim/queue_pair/responder.h"
#include "sim/queues/queue_pair_options.h"
#include "sim/queues/receive_queue.h"
#include "sim/queues/send_queue.h"
#include "sim/queues/shared_receive_queue.h"
#include "sim/queues/xrc_domain.h"
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
  llp::Outcome outcome;
  bool initiator = false;
  bool to_itself = false; // the stream's peer is this queue pair
  bool dialled = false;   // the program connects by ibv_modify_qp; otherwise by rdma_cm
  rdmap::Delivery delivery = rdmap::Delivery::kPlain;  // that both ends agreed on
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
                        private rdmap::Host,
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
  Service service() const;
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
  // Ends the connection in order: what was posted so far goes out, then FIN. ENOTCONN.
  int Disconnect();

  // For completion queues that were polled empty: one step of the connection on the caller's thread, if nobody else is at it.
  // `spinning`: it will be called again at once, so that the network need not watch the connection meanwhile.
  void DriveInline(bool spinning) override;
  // Sends what was posted and not sent yet for the sake of batching.
  void FlushDeferred() override;
  bool RunErrand() override;
  transport::Network& network() const override;

  // Acknowledges what came: a program may end right after its last completion.
  void OnExit() override;

  // The region goes away (see Adapter::ForgetRegion).
  void ForgetRegion(const RegionInfo& gone) override;

  // queue_pair_faults.cc
  QueuePairSnapshot Snapshot() override;
  std::string CaptureComment() const;  // names the queue pair for who reads a capture; empty when there is none
  void ApplyFaults() override;
  void FailFatally(const std::string& device) override;

 private:
  class EngineLock;
  struct Connection;
  enum class Upcall : uint8_t { kEstablished, kDisconnected, kNeverEstablished, kFatal, kAccessError, kRequestError, kLastReceive, kCommunication, kDrained };

  // transport::ReadyHandler
  void OnReady(transport::Interest ready) override;
  void OnDriven(transport::Interest ready, bool spinning) override;

  // llp::ChannelUser
  void OnWake() override;

  void SetState(ibv_qp_state to);
  // For messages: the peer's address, and its queue pair where the program names one.
  std::string PeerName() const;

  // rdmap::Host; with the engine held.
  Result<uint8_t*, rdmap::AccessError> Resolve(ddp::STag stag, ddp::TaggedOffset offset, uint32_t length,
                                               rdmap::Access access) override;
  std::optional<rdmap::ReceiveTarget> TakeReceive() override;
  void Received(const rdmap::ReceivedSend& message) override { responder_.Received(message); }
  std::optional<rdmap::AccessError> Invalidate(ddp::STag stag) override;
  rdmap::Request* NextRequest() override;
  void Started(rdmap::Request& request) override { requester_.Started(request); }
  void Sent(rdmap::Request& request) override;
  void ReadDone(rdmap::Request& request) override;
  bool ReceivesExhausted() const override { return responder_.exhausted(); }
  Result<uint64_t, rdmap::AccessError> Atomic(ddp::STag stag, ddp::TaggedOffset offset,
                                              const rdmap::AtomicOperation& operation) override;
  void ReceiverNotReady(rdmap::Request& request, uint8_t timer) override;
  bool SelectTarget(uint32_t number) override;

  // Everything below with the engine held, unless it says otherwise.
  void Ring();                       // without the engine; after posting
  void ArmFlushTimer();              // without
  void OnFlushTimer(uint64_t posted_before);  // without
  // Receives, transmits, looks at what became of the stream. `eager`: what came is acknowledged at once.
  void Step(bool eager);
  // ... for a program that polls.
  void StepForPoll(bool spinning, bool eager);
  void ReceiveRestOfMessage();
  // With or without the engine: what waits for the next poll. False: no completion queue takes it; there are few queue
  // pairs, and a poll looks at each.
  bool AddErrand();
  bool Receive();                    // false: there was nothing
  void Transmit();
  void CheckStream();
  void FinishDisconnect();
  void FinishTerminateLater(transport::Time until);
  // We end the stream: the program hears of it, once, whatever the peer still has to take in front of the Terminate.
  void TellOfTermination(const rdmap::TerminateMessage& why);
  // An error of our own; the peer of a plain stream is to hear of it (RFC 5040 section 7.1).
  void TellPeerOfLocalError();
  // ForgetRegion(). `request`: which takes it away, and is then done.
  void Forget(const RegionInfo& gone, std::optional<uint64_t> request);
  void CarryOutRevocation(std::unique_lock<std::mutex>& engine);
  // queue_pair_xrc.cc
  void AttachTo(const std::shared_ptr<CompletionQueue>& queue);
  void DetachAll();  // without
  // Ends the connection: to ERR, everything outstanding completes, the socket is let go.
  // `blame` is the status of the request with count `at`, the oldest that is not complete if it is not said.
  void Fail(bool orderly, std::optional<ibv_wc_status> blame = std::nullopt, std::optional<uint64_t> at = std::nullopt);
  void EnterError();  // what Fail() does, and the connection stays
  void FlushQueues(std::optional<ibv_wc_status> blame, std::optional<uint64_t> at = std::nullopt);
  void CloseConnection(bool orderly);
  // queue_pair_modify.cc
  int ModifyIwarp(const ibv_qp_attr& attributes, int mask);  // without
  int ModifyRoce(const ibv_qp_attr& attributes, int mask);   // without
  int ChangeState(ibv_qp_state to, const ibv_qp_attr& attributes, int mask);
  std::optional<PeerChoice> ChoosePeer(const ibv_qp_attr& attributes) const;
  void TakeAttributes(const ibv_qp_attr& from, int mask);
  void EnterState(ibv_qp_state from, ibv_qp_state to);
  void Reset();

  // queue_pair_delivery.cc: what the RoCE persona adds.
  bool OwesAcknowledgement() const;
  bool AcknowledgementWanted() const;  // the peer's program waits for it
  // Before the end: what lies in the socket had reached the adapter already, which would have acknowledged it.
  void AcceptWhatCame();
  void AcknowledgeLater();
  void ArmAcknowledgementTimer(bool wanted);
  void RunAcknowledgementTimer(bool wanted, transport::Duration after);  // with or without the engine
  void OnAcknowledgementTimer(bool wanted);                              // without
  void ForgetRefusals();
  void TellOfDrain();
  // The connection ended; what the program wants of the peer fails, of a peer that it chose itself after the retries.
  void Lose(bool orderly);
  void AskNobody();  // the peer is gone, and the program may want something of it
  transport::Duration RetryLimit() const;
  uint64_t Progress() const;
  void WatchProgress();
  // Connected to itself: the stream ends by our own Terminate, which is the peer's as well.
  void FailByItself(const rdmap::TerminateMessage& why);

  SendQueue& sends() { return requester_.queue(); }
  const SendQueue& sends() const { return requester_.queue(); }
  // Something is to be said, or done, without the engine.
  bool HasToDeliver() const { return !upcalls_.empty() || requester_.revocation_waits(); }

  Adapter& adapter_;
  PeerFinder* const peers_;
  const uint32_t number_;
  const MemoryUser memory_user_;
  const bool roce_;
  std::atomic<bool> plain_ = false;  // for all that, it asks for nothing
  QueuePairOptions options_;
  QueuePairCounters counters_;  // written with the engine held
  std::atomic<ibv_qp_state> state_{IBV_QPS_RESET};
  std::atomic<bool> doorbell_{false};
  std::array<Errand, 2> errands_;  // of the completion queues for sends and for receives

  // Guarded by the post mutex of the send queue.
  DoorbellBatching batching_;
  bool flush_timer_armed_ = false;

  // Held while others are called, so that Destroy() can wait for that; recursive because they may call in again.
  std::recursive_mutex upcall_mutex_;
  std::atomic<bool> destroyed_{false};


  std::mutex attach_mutex_;  // taken before that of a completion queue's queue pairs, and never within it

  mutable std::mutex engine_mutex_;  // guards everything below
  Completer completer_;
  Requester requester_;
  Responder responder_;
  std::unique_ptr<Connection> connection_;
  transport::SocketAddress last_peer_;
  std::vector<Upcall> upcalls_;
  ibv_qp_attr attributes_{};
  std::shared_ptr<ConnectionObserver> observer_;
  struct AcknowledgementTimer {
    bool armed = false;
    uint32_t received = 0;  // the peer's last request when it was armed: what is owed of those is due when it fires
    transport::Duration after{};
  };
  bool dialled_ = false;             // the program connects it by ibv_modify_qp
  bool lost_ = false;                // ... and the connection that it had is gone
  bool drain_told_ = true;           // IBV_EVENT_SQ_DRAINED
  uint32_t errand_received_ = 0;     // the peer's last request when an acknowledgement was left to the next poll
  AcknowledgementTimer acknowledgement_timers_[2];  // for what nobody waits for, and for what is wanted
  uint64_t progress_ = 0;            // grows when the peer's end takes bytes
  unsigned postponed_ = 0;           // how often in a row it talked without answering
  transport::TimerId retry_timer_ = 0;
  std::vector<std::shared_ptr<CompletionQueue>> attached_;  // that drive the connection, or are about to
  // Receiver not ready: the request that was refused, and how often in a row.
  transport::TimerId refusal_timer_ = 0;
  uint64_t refused_ = UINT64_MAX;
  unsigned refusals_ = 0;
  bool refusals_exhausted_ = false;
};

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_QUEUE_PAIR_H_
