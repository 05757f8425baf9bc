#ifndef MPI_HYBRID_P2P_ENGINE_ENGINE_H_
#define MPI_HYBRID_P2P_ENGINE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/p2p/engine/channel.h"
#include "mpi_hybrid/p2p/engine/id_table.h"
#include "mpi_hybrid/p2p/engine/link.h"
#include "mpi_hybrid/p2p/engine/matching.h"
#include "mpi_hybrid/p2p/engine/operation.h"

namespace weft::mpi {

// What a blocking probe waits for.
struct AwaitedProbe {
  ProcessId process;  // or MPI_ANY_SOURCE
  const Comm& comm;
};

struct EngineLimits {
  size_t eager = 128 * 1024;                 // messages of more bytes go by rendezvous
  size_t window = 8 * 1024 * 1024;           // bytes of eager messages from one sender that we store
  size_t chunk = 1024 * 1024;                // data bytes of one frame of a rendezvous
};

// The protocol of point-to-point messages for one process, without I/O: matching, eager and rendezvous, synchronous mode, cancelling,
// deaths. Links carry its frames. Guarded by the library's lock.
class Engine {
 public:
  Engine(ProcessId self, const EngineLimits& limits) : self_(self), limits_(limits) {}
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // How messages to the user call a process; without it they are ranks of MPI_COMM_WORLD.
  void set_describe(std::function<std::string(ProcessId)> describe) { describe_ = std::move(describe); }
  std::string Describe(ProcessId process) const;
  // Is told of each process that died or left.
  void set_on_gone(std::function<void(ProcessId)> on_gone) { on_gone_ = std::move(on_gone); }

  const EngineLimits& limits() const { return limits_; }
  ProcessId self() const { return self_; }

  // The link to `process`, made on first use. Not to ourselves.
  Link& LinkTo(ProcessId process);
  Link* FindLink(ProcessId process) const {
    return static_cast<size_t>(process) < links_.size() ? links_[static_cast<size_t>(process)].get() : nullptr;
  }
  // Calls visit(Link&) for each link that was ever used.
  template <typename Visit>
  void ForEachLink(Visit visit) const {
    for (const auto& link : links_) {
      if (link != nullptr) visit(*link);
    }
  }
  // Links that got something to write since they were last taken.
  std::vector<Link*>& with_output() { return with_output_; }

  // See message.h; no MPI_PROC_NULL, mode not buffered.
  Error StartSend(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, SendMode mode,
                  Channel channel, Request** request);
  Error StartReceive(void* buffer, MPI_Aint count, const Datatype& type, int source, int tag, Comm& comm, Channel channel,
                     Request** request);
  // The error that StartReceive would have now.
  Error MayReceive(int source, int tag, Comm& comm, Channel channel) const;
  // A message that `source` has sent to `comm` with `tag`, if one is the next to come, has no other receive: none is posted that it matches, and
  // no earlier one waits. Neither is a wild card.
  bool IsForNewReceive(int source, int tag, const Comm& comm, Channel channel) const {
    return (posted_.empty() && unexpected() == 0) || FindsNobody({comm.receive_context + static_cast<uint32_t>(channel), source, tag});
  }
  // An eager message of which the first `written` bytes (of the frame: header, then data) went out already; returns the request. Only
  // when the link has no other output.
  Request* ContinueSend(Link& link, const FrameHeader& header, const Payload& payload, size_t written, const Datatype& type, Comm& comm);
  // The first message that waits for such a receive, or null.
  Message* FindMessage(int source, int tag, Comm& comm);
  static MPI_Status StatusOf(const Message& message);
  // Takes a message out for a matched receive.
  void TakeOut(Message& message);
  Error ReceiveTaken(void* buffer, MPI_Aint count, const Datatype& type, Message& message, Comm* comm, Request** request);
  // The error of a probe for a source that cannot send any more. MPI_ANY_SOURCE: nobody is left, or a process of the communicator died
  // of which the program has not said that it knows (Comm::acknowledged).
  Error SourceError(int source, Comm& comm);
  // Why a wait for `receive`, which is not complete, is to end: MPIX_ERR_PROC_FAILED_PENDING, while it is posted for anyone and such a process died.
  Error Hindrance(const ReceiveRequest& receive) const;

  // A process died (or left in order, `left`): what needs it fails.
  void OnGone(ProcessId process, bool left);
  // There is no way to `process` now, which may well live: the sends that wait for one fail, and where there are any the receives from it, which
  // an exchange would wait for in vain. Later ones try again, and so do notes, which wait until there is a way.
  void OnUnreachable(ProcessId process, const Error& error);
  // How often that was so. Who waits for such a process has nothing to learn its death by then.
  unsigned unreached() const { return unreached_; }
  bool IsDead(ProcessId process) const;
  // Those of `group` that died or left, as far as is known.
  std::vector<ProcessId> GoneOf(const Group& group) const;
  // Nothing is under way with `process`, and its connection is closed: its number may be another's from now on. What it
  // sent that nobody received is dropped.
  void Forget(ProcessId process);
  // Messages that wait for a receive.
  size_t unexpected() const { return waiting_.size() + early_.size(); }
  // Messages for ports that had no receive.
  unsigned knocks() const { return knocks_; }
  int deaths() const { return deaths_; }

  // How many processes died or left.
  unsigned gone() const { return gone_; }

  // --- revoked communicators (revoked.cc) ---
  // From now on nothing goes by `comm`: what is started on it fails with MPIX_ERR_REVOKED, as do receives that are posted; messages that wait, and those
  // that still come, are dropped, and who sent them is told where it waits for that. Sends end by that or by the death of the receiver.
  void Revoke(Comm& comm);
  static Error RevokedError();
  bool IsRevoked(uint32_t context) const {
    return !revoked_.empty() && revoked_.contains(ContextPool::IdOf(context % ContextPool::kContexts));
  }
  // `arrives`: its data still do.
  void Refuse(Message& message, bool arrives);

  // --- notes: what the libraries of two processes tell each other beside messages, in order ---
  static constexpr size_t kMostNote = 1 << 20;  // bytes
  struct Note {
    ProcessId from;
    std::vector<uint8_t> bytes;
  };
  // To another; lost where that is gone.
  void SendNote(ProcessId process, std::span<const uint8_t> bytes);
  // Without a taker they are dropped. It may not call back, but for TakeNotes at another time.
  void set_on_note(std::function<void()> on_note) { on_note_ = std::move(on_note); }
  bool has_notes() const { return !notes_.empty(); }
  std::vector<Note> TakeNotes() { return std::exchange(notes_, {}); }

  // Sends that are not done; what StopDevice waits for.
  bool HasUnfinishedSends() const { return unfinished_sends_ != 0; }
  // A probe waits from Start to Stop; `probe` lives as long.
  void StartAwaiting(const AwaitedProbe& probe);
  void StopAwaiting(const AwaitedProbe& probe);
  // Calls visit(ProcessId or MPI_ANY_SOURCE, const Comm&) for each receive and each probe that waits for a message.
  template <typename Visit>
  void ForEachAwaited(Visit visit) const {
    posted_.ForEach([&](MatchHook& hook) {
      const auto& receive = *static_cast<ReceiveRequest*>(hook.owner);
      visit(receive.process, *receive.comm);
    });
    for (const AwaitedProbe* probe : probes_) visit(probe->process, probe->comm);
  }

  // For Link.
  ReceiveRequest* TakePosted(const MatchKey& envelope) {
    return TakePostedIf(envelope, [] { return true; });
  }
  // Where there is one it is asked whether it may go.
  template <typename MayGo>
  ReceiveRequest* TakePostedIf(const MatchKey& envelope, MayGo may_go) {
    MatchHook* const hook = posted_.Find(envelope);
    if (hook == nullptr || !may_go()) return nullptr;
    RemovePosted(*hook);
    return static_cast<ReceiveRequest*>(hook->owner);
  }
  // For a message that came before one that was sent earlier: only a receive that the missing one cannot match.
  ReceiveRequest* TakePostedForEarly(const MatchKey& envelope);
  // `turn` of an early message, or null.
  Message* Store(const FrameHeader& header, Link& link, const Arrivals::Early* turn);
  // A message came whose turn it was: those behind it may have theirs now.
  void AfterInOrder(Link& link, uint32_t context) {
    if (link.has_streams() || wild_taken_) LookAtEarly(link, context);
  }
  void Finish(SendRequest& send);
  void Finish(ReceiveRequest& receive);
  void FinishStored(Message& message);  // the last byte of an eager message arrived
  void FinishCancelled(SendRequest& send);
  Message* NewNote(const FrameHeader& header, Link& link);
  void Fail(SendRequest& send, const Error& error);
  void Fail(ReceiveRequest& receive, const Error& error);
  struct Announced {
    uint32_t send_id;  // at the sender
    uint64_t length;
    uint64_t offer;  // Link::Offer, or 0
  };
  // Fetches the data of a message, or tells its sender to send them. Where other threads may want the lock, long data are fetched later, by FetchPart.
  void Clear(ReceiveRequest& receive, Link& link, const Announced& announced);
  bool WithdrawRequest(Link& link, uint32_t send_id);  // on kCancel: whether the message was still waiting
  SendRequest* SendOf(const Link& link, uint32_t id) const;
  ReceiveRequest* ReceiveOf(const Link& link, uint32_t id) const;
  // --- long data that are copied from where their senders have them (Lane::Fetch) ---
  bool has_fetches() const { return !fetches_.empty(); }
  // Copies the next LibraryLock::kMostCopied bytes of the oldest. Only where there is one.
  void FetchPart();

  void GiveId(SendRequest& send) { send.id = sends_.Add(&send); }
  void OnOutput(Link& link) { with_output_.push_back(&link); }

  // For the requests' own.
  // True: done; false: it is too late, or the other side is asked.
  bool CancelSend(SendRequest& send);
  void CancelReceive(ReceiveRequest& receive);

 private:
  // No receive that is posted, and no message that waits.
  bool FindsNobody(const MatchKey& key) const { return posted_.Find(key) == nullptr && FindWaiting(key) == nullptr; }
  void LookAtEarly(Link& link, uint32_t context);
  void RetryEarly();
  void TakeTurn(Message* message);
  Message* FindEarly(const MatchKey& key) const;
  Message* FindWaiting(const MatchKey& key) const;
  void RemoveWaiting(Message& message);
  void RemovePosted(MatchHook& hook) {
    if (early_.size() != 0 && posted_.TakesAnyTag(hook)) wild_taken_ = true;
    posted_.Remove(hook);
  }
  template <typename Visit>
  void ForEachWaiting(Visit visit) const {
    const auto visit_owner = [&](void* owner) { visit(*static_cast<Message*>(owner)); };
    waiting_.ForEach(visit_owner);
    early_.ForEach(visit_owner);
  }
  void FinishNote(Message& note);
  void SendToSelf(SendRequest& send, const MatchKey& envelope);
  void SendEager(SendRequest& send, const MatchKey& envelope);
  void Announce(SendRequest& send, const MatchKey& envelope);
  void Give(Message& message, ReceiveRequest& receive);
  struct Fetching {
    ReceiveRequest* receive;
    uint32_t send_id;  // at the sender
    uint64_t from;     // Link::Offer, of what is left
    uint64_t left;     // bytes
  };
  static bool IsFetched(const ReceiveRequest& receive, const Link& link, const Announced& announced, uint64_t wanted, bool sends);
  void StopFetching(ReceiveRequest& receive);
  void ForgetId(ReceiveRequest& receive);
  void AskFor(ReceiveRequest& receive, uint32_t send_id, uint64_t wanted);
  Error GoneError(ProcessId process) const;
  Error NobodySends(int source, const Comm& comm) const;
  std::optional<ProcessId> Unacknowledged(const Comm& comm) const;
  bool NobodyLeft(const Comm& comm) const;
  Error NobodyLeftError(const Comm& comm) const;
  void FailPosted(ProcessId process, const Error& error);

  const ProcessId self_;
  const EngineLimits limits_;
  std::function<std::string(ProcessId)> describe_;
  std::function<void(ProcessId)> on_gone_;
  std::vector<std::unique_ptr<Link>> links_;  // by process
  std::vector<Link*> with_output_;
  PostedReceives posted_;
  WaitingMessages waiting_;
  WaitingMessages early_;  // of which one that was sent before is missing (arrivals.h)
  bool wild_taken_ = false;  // a receive of any tag went from posted_, while messages were early
  std::vector<const AwaitedProbe*> probes_;
  size_t self_stored_ = 0;  // bytes of messages to ourselves that wait as copies
  IdTable<SendRequest> sends_;
  IdTable<ReceiveRequest> receives_;
  std::vector<Fetching> fetches_;  // the oldest first; all are in receives_, too
  size_t unfinished_sends_ = 0;
  int deaths_ = 0;
  std::vector<ProcessId> dead_;  // as far as they are known still
  unsigned unreached_ = 0;
  unsigned knocks_ = 0;
  unsigned gone_ = 0;
  std::unordered_set<uint32_t> revoked_;  // context ids; they are never used again
  std::function<void()> on_note_;
  std::vector<Note> notes_;
  bool anyone_left_ = false;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_ENGINE_H_
