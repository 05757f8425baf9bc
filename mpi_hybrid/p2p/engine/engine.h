#ifndef MPI_HYBRID_P2P_ENGINE_ENGINE_H_
#define MPI_HYBRID_P2P_ENGINE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
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

// The messages that a blocking probe waits for.
struct AwaitedProbe {
  ProcessId process;  // or MPI_ANY_SOURCE
  const Comm& comm;
};

struct EngineLimits {
  size_t eager = 128 * 1024;                 // longer messages, in bytes, use the rendezvous protocol
  size_t window = 8 * 1024 * 1024;           // bytes of eager messages from one sender that this process stores
  size_t chunk = 1024 * 1024;                // bytes of data in one frame of a rendezvous
};

// The protocol of point-to-point messages for one process, without I/O: matching, eager and rendezvous, synchronous
// mode, cancelling, deaths. Links carry its frames. Guarded by the library's lock.
class Engine {
 public:
  Engine(ProcessId self, const EngineLimits& limits) : self_(self), limits_(limits) {}
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Sets how messages to the user name a process; by default, as a rank of MPI_COMM_WORLD.
  void set_describe(std::function<std::string(ProcessId)> describe) { describe_ = std::move(describe); }
  std::string Describe(ProcessId process) const;
  // Sets a function that is called for each link when it is made. It may call Link::OpenForeign, and OnGone.
  void set_on_link(std::function<void(Link&)> on_link) { on_link_ = std::move(on_link); }
  // There are processes of other clients. `tag` is the highest one of a message on a foreign link; a send with a higher one fails with MPI_ERR_TAG.
  void AdmitForeign(int tag) {
    admits_foreign_ = true;
    foreign_tag_bound_ = tag;
  }
  bool admits_foreign() const { return admits_foreign_; }
  // Sets a function that is called for each process that died or left.
  void set_on_gone(std::function<void(ProcessId)> on_gone) { on_gone_ = std::move(on_gone); }

  const EngineLimits& limits() const { return limits_; }
  ProcessId self() const { return self_; }

  // The link to `process`, made at its first use. Not for this process itself.
  Link& LinkTo(ProcessId process);
  Link* FindLink(ProcessId process) const {
    return static_cast<size_t>(process) < links_.size() ? links_[static_cast<size_t>(process)].get() : nullptr;
  }
  // Calls visit(Link&) for each link that was used.
  template <typename Visit>
  void ForEachLink(Visit visit) const {
    for (const auto& link : links_) {
      if (link != nullptr) visit(*link);
    }
  }
  // Links that have got output since the list was last taken.
  std::vector<Link*>& with_output() { return with_output_; }

  // See message.h. Not for MPI_PROC_NULL, and not for buffered mode.
  Error StartSend(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, SendMode mode,
                  Channel channel, Request** request);
  Error StartReceive(void* buffer, MPI_Aint count, const Datatype& type, int source, int tag, Comm& comm, Channel channel,
                     Request** request);
  // The error that StartReceive would return now.
  Error MayReceive(int source, int tag, Comm& comm, Channel channel) const;
  // Whether the next message that `source` sends to `comm` with `tag` can only match a new receive: no posted receive
  // matches it, and no earlier message waits. `source` and `tag` are not wild cards.
  bool IsForNewReceive(int source, int tag, const Comm& comm, Channel channel) const {
    return (posted_.empty() && unexpected() == 0) || FindsNobody({comm.receive_context + static_cast<uint32_t>(channel), source, tag});
  }
  // Continues an eager message of which the first `written` bytes (of the frame: header, then data) have already been
  // sent. Returns the request. Allowed only if the link has no other output.
  Request* ContinueSend(Link& link, const FrameHeader& header, const Payload& payload, size_t written, const Datatype& type, Comm& comm);
  // The first waiting message that such a receive matches, or null.
  Message* FindMessage(int source, int tag, Comm& comm);
  static MPI_Status StatusOf(const Message& message);
  // Removes a message from the waiting ones, for a matched receive.
  void TakeOut(Message& message);
  Error ReceiveTaken(void* buffer, MPI_Aint count, const Datatype& type, Message& message, Comm* comm, Request** request);
  // The error of a probe for a source that cannot send any more. For MPI_ANY_SOURCE: no process is left, or a process
  // of the communicator died whose death the program has not acknowledged (Comm::acknowledged).
  Error SourceError(int source, Comm& comm);
  // Why a wait for `receive`, which is not complete, must end. MPIX_ERR_PROC_FAILED_PENDING: it is posted for any
  // source, and an unacknowledged death occurred.
  Error Hindrance(const ReceiveRequest& receive) const;

  // A process died (`left`: it left in an orderly way). Operations that need it fail.
  void OnGone(ProcessId process, bool left);
  // `process` cannot be reached now, though it may well be alive. Sends that wait for a connection fail. If there are
  // any, receives from it fail too, because an exchange would wait for them in vain. Later sends try again. So do
  // notes, which wait until there is a connection.
  void OnUnreachable(ProcessId process, const Error& error);
  // How often OnUnreachable was called. While a process cannot be reached, a wait for it cannot learn of its death.
  unsigned unreached() const { return unreached_; }
  bool IsDead(ProcessId process) const;
  // The members of `group` that are known to have died or left.
  std::vector<ProcessId> GoneOf(const Group& group) const;
  // No operation is pending with `process`, and its connection is closed: its number may be reused from now on.
  // Messages of it that were not received are dropped.
  void Forget(ProcessId process);
  // Number of messages that wait for a receive.
  size_t unexpected() const { return waiting_.size() + early_.size(); }
  // Number of messages for ports that had no receive.
  unsigned knocks() const { return knocks_; }
  int deaths() const { return deaths_; }

  // Number of processes that died or left.
  unsigned gone() const { return gone_; }

  // --- revoked communicators (revoked.cc) ---
  // Revokes `comm`. Operations started on it fail with MPIX_ERR_REVOKED, and so do posted receives. Messages that wait,
  // and those that still arrive, are dropped; a sender that waits for an answer is told. Sends end in this way, or by
  // the death of the receiver.
  void Revoke(Comm& comm);
  static Error RevokedError();
  bool IsRevoked(uint32_t context) const {
    return !revoked_.empty() && revoked_.contains(RevocableId(context));
  }
  // `arrives`: its data is still arriving.
  void Refuse(Message& message, bool arrives);

  // --- notes: messages between the libraries of two processes, in order ---
  static constexpr size_t kMostNote = 1 << 20;  // bytes
  struct Note {
    ProcessId from;
    std::vector<uint8_t> bytes;
  };
  // Sends a note to another process. It is lost if that process is gone.
  void SendNote(ProcessId process, std::span<const uint8_t> bytes);
  // Notes are dropped unless a function is set. The function must not call the engine; it may have TakeNotes called
  // later.
  void set_on_note(std::function<void()> on_note) { on_note_ = std::move(on_note); }
  bool has_notes() const { return !notes_.empty(); }
  std::vector<Note> TakeNotes() { return std::exchange(notes_, {}); }

  // Whether sends have not completed; StopDevice waits for them.
  bool HasUnfinishedSends() const { return unfinished_sends_ != 0; }
  // StartAwaiting and StopAwaiting enclose the wait of a probe. `probe` must live as long.
  void StartAwaiting(const AwaitedProbe& probe);
  void StopAwaiting(const AwaitedProbe& probe);
  // Calls visit(process or MPI_ANY_SOURCE, const Comm&) for each receive and each probe that waits for a message.
  template <typename Visit>
  void ForEachAwaited(Visit visit) const {
    posted_.ForEach([&](MatchHook& hook) {
      const auto& receive = *static_cast<ReceiveRequest*>(hook.owner);
      visit(receive.process, *receive.comm);
    });
    for (const AwaitedProbe* probe : probes_) visit(probe->process, probe->comm);
  }

  // Functions for Link.
  ReceiveRequest* TakePosted(const MatchKey& envelope) {
    return TakePostedIf(envelope, [] { return true; });
  }
  // If there is a matching receive, `may_go` decides whether it is removed.
  template <typename MayGo>
  ReceiveRequest* TakePostedIf(const MatchKey& envelope, MayGo may_go) {
    MatchHook* const hook = posted_.Find(envelope);
    if (hook == nullptr || !may_go()) return nullptr;
    RemovePosted(*hook);
    return static_cast<ReceiveRequest*>(hook->owner);
  }
  // For a message that arrived before one that was sent earlier: only a receive that the missing message cannot match.
  ReceiveRequest* TakePostedForEarly(const MatchKey& envelope);
  // `turn`: of an early message; else null.
  Message* Store(const FrameHeader& header, Link& link, const Arrivals::Early* turn);
  // A message has arrived in its turn. Messages behind it may now be in turn as well.
  void AfterInOrder(Link& link, uint32_t context) {
    if (link.has_streams() || wild_taken_) LookAtEarly(link, context);
  }
  void Finish(SendRequest& send);
  void Finish(ReceiveRequest& receive);
  void FinishStored(Message& message);  // the last byte of an eager message has arrived
  void FinishCancelled(SendRequest& send);
  Message* NewNote(const FrameHeader& header, Link& link);
  void Fail(SendRequest& send, const Error& error);
  void Fail(ReceiveRequest& receive, const Error& error);
  struct Announced {
    uint32_t send_id;  // at the sender
    uint64_t length;
    uint64_t offer;  // Link::Offer, or 0
  };
  // Fetches the data of a message, or asks its sender for the data. If other threads may want the lock, long data is
  // fetched later by FetchPart.
  void Clear(ReceiveRequest& receive, Link& link, const Announced& announced);
  bool WithdrawRequest(Link& link, uint32_t send_id);  // for kCancel: returns whether the message was still waiting
  SendRequest* SendOf(const Link& link, uint32_t id) const;
  ReceiveRequest* ReceiveOf(const Link& link, uint32_t id) const;
  // --- long data copied directly from the sender's memory (Lane::Fetch) ---
  bool has_fetches() const { return !fetches_.empty(); }
  // Copies the next LibraryLock::kMostCopied bytes of the oldest fetch. Call it only if there is one.
  void FetchPart();

  void GiveId(SendRequest& send) { send.id = sends_.Add(&send); }
  void OnOutput(Link& link) { with_output_.push_back(&link); }

  // Functions for the requests.
  // True: cancelled. False: it is too late, or the peer has been asked.
  bool CancelSend(SendRequest& send);
  void CancelReceive(ReceiveRequest& receive);

 private:
  // Communicators with contexts from kContexts on span clients (p2p/impi), and are never revoked, unless they are of partitioned communication (channel.h).
  static uint32_t RevocableId(uint32_t context) { return ContextPool::IdOf(context >> 31 != 0 ? context % ContextPool::kContexts : context); }
  // True: no posted receive and no waiting message matches.
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
  // A send to a process of another MPI implementation: a copy in external32, unless the data are the same bytes there.
  Error StartForeign(Link& link, const void* buffer, MPI_Aint count, const Datatype& type, int tag, Comm& comm, SendMode mode, Channel channel,
                     Request** request);
  // With a reference for the engine, and without data.
  SendRequest* NewSend(Link* link, MPI_Aint count, const Datatype& type, Comm& comm, SendMode mode);
  void SendOrAnnounce(SendRequest& send, const MatchKey& envelope);
  void SendEager(SendRequest& send, const MatchKey& envelope);
  void Announce(SendRequest& send, const MatchKey& envelope);
  void Give(Message& message, ReceiveRequest& receive);
  struct Fetching {
    ReceiveRequest* receive;
    uint32_t send_id;  // at the sender
    uint64_t from;     // Link::Offer, of the rest
    uint64_t left;     // bytes
  };
  static bool IsFetched(const ReceiveRequest& receive, const Link& link, const Announced& announced, uint64_t wanted, bool sends);
  void StopFetching(ReceiveRequest& receive);
  void EndSlowly(ReceiveRequest& receive);
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
  std::function<void(Link&)> on_link_;
  bool admits_foreign_ = false;
  int foreign_tag_bound_ = std::numeric_limits<int>::max();
  std::function<void(ProcessId)> on_gone_;
  std::vector<std::unique_ptr<Link>> links_;  // by process
  std::vector<Link*> with_output_;
  PostedReceives posted_;
  WaitingMessages waiting_;
  WaitingMessages early_;  // early messages: one that was sent before them is missing (arrivals.h)
  bool wild_taken_ = false;  // a receive for any tag was removed from posted_ while there were early messages
  std::vector<const AwaitedProbe*> probes_;
  size_t self_stored_ = 0;  // bytes of messages from this process to itself that wait as copies
  IdTable<SendRequest> sends_;
  IdTable<ReceiveRequest> receives_;
  std::vector<Fetching> fetches_;  // oldest first; all are in receives_, too
  size_t unfinished_sends_ = 0;
  int deaths_ = 0;
  std::vector<ProcessId> dead_;  // those whose numbers are still in use
  unsigned unreached_ = 0;
  unsigned knocks_ = 0;
  unsigned gone_ = 0;
  std::unordered_set<uint32_t> revoked_;  // context ids, which are never used again
  std::function<void()> on_note_;
  std::vector<Note> notes_;
  bool anyone_left_ = false;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_ENGINE_H_
