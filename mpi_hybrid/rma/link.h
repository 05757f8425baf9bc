#ifndef MPI_HYBRID_RMA_LINK_H_
#define MPI_HYBRID_RMA_LINK_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "mpi_hybrid/comm/group.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/rma/registration.h"
#include "mpi_hybrid/rma/request.h"
#include "mpi_hybrid/rma/send_order.h"
#include "mpi_hybrid/rma/wire.h"
#include "transport/socket_address.h"

namespace weft::mpi::rma {

class Device;

// A caller that waits for a reply; it lives on the stack.
struct ReplyWaiter {
  bool done = false;
  bool failed = false;  // the connection broke
  ReplyStatus status = ReplyStatus::kDone;
  uint8_t data[32] = {};
  size_t bytes = 0;
};

// Data of the program that is filled by a reply, or from a bounce buffer by a Read: `bytes` bytes from `position` on,
// in the order of the type map.
struct Sink {
  void* buffer = nullptr;
  MPI_Aint count = 0;
  Ref<const Datatype> type;  // null: none
  MPI_Aint position = 0;
  size_t bytes = 0;
};

// What to do with a reply.
struct Reply {
  Sink sink;
  ReplyWaiter* waiter = nullptr;
  RmaRequest* request = nullptr;  // the reply completes one part of it
  bool* out_of_range = nullptr;   // set to true if the target says so; must outlive the reply
  // memory of the program that the target fills by RDMA Write before the reply; released with it
  Registration* filled = nullptr;
  // a window of this process: the reply is the target's own notice of a fence of that window (fence_notice.h); 0: none
  uint32_t fenced = 0;
  uint32_t fence = 0;             // the number of that fence
};

// An atomic of the RNIC on 8 bytes, integers in the order of the target's bytes: adds `operand`, or if it `swaps` stores `swap` where `operand` is.
struct RdmaAtomic {
  bool swaps = false;
  uint64_t operand = 0, swap = 0;
};

// What to do when the work requests up to a number have completed.
struct LocalCompletion {
  uint64_t number = 0;
  RmaRequest* request = nullptr;
  Registration* registration = nullptr;
  BufferPool* pool = nullptr;  // of `bounce`
  BufferPool::Buffer bounce;   // freed after `sink` was filled from it
  Sink sink;
};

// The connection by which this process works on one target: a queue pair of which it is the initiator. RDMA Writes,
// Reads and messages (wire.h) are sent in the order of the calls, and the target sees them in that order. Writes and
// Reads of up to 32 KiB, and messages that others follow, are collected until Ring(), which needs one system call for
// all of them. A Read is collected only while another one is outstanding. Guarded by the library's lock. Calls may wait
// for progress when queues are full.
class Link {
 public:
  Link(Device& device, ProcessId process);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void StartConnect(const transport::SocketAddress& from, const transport::SocketAddress& to);
  // An event of the connection manager for this link. The caller acknowledges it.
  void OnEvent(const rdma_cm_event& event);
  bool connecting() const { return state_ == State::kConnecting || greeting(); }
  // The connection is established, but its first message, which must precede all others, has not been answered yet
  // (Device::greets).
  bool greeting() const { return state_ == State::kGreeting; }
  // Valid while greeting: sends a message that changes nothing at the target.
  void Nudge();
  bool up() const { return state_ == State::kUp; }
  bool broken() const { return state_ == State::kBroken; }
  // unreachable: broken without having been up, for a reason that does not mean that the target is gone. wants_room:
  // the reason is a lack of resources at one of the two processes, so that a new link may succeed.
  bool unreachable() const { return broken() && unreachable_; }
  bool wants_room() const { return wants_room_; }
  // If broken: ClassOfGone (p2p/message.h). If unreachable: MPI_ERR_OTHER.
  Error failure() const;
  ProcessId process() const { return process_; }

  // RDMA. `bytes` is at most Device::max_message(). Small ones (`bytes` <= inline_room()) are copied and complete
  // locally with the call.
  uint32_t inline_room() const { return inline_room_; }
  Error Write(const void* from, uint32_t key, uint64_t to, uint32_t to_key, size_t bytes);
  Error Read(void* into, uint32_t key, uint64_t from, uint32_t from_key, size_t bytes);
  // Whether the connection has atomics. Each takes its turn at the target among the messages and Writes, in the order of the calls.
  bool has_atomics() const { return has_atomics_; }
  // What was there goes to the 8 bytes at `into`.
  Error Atomic(const RdmaAtomic& atomic, uint8_t* into, uint32_t key, uint64_t at, uint32_t at_key);
  // Number of the last work request. WhenComplete may be called only for a request that is signaled, or that a signaled
  // one will follow.
  uint64_t last() const { return posted_; }
  // Number of the last one that uses memory of the program. These are signaled.
  uint64_t last_local() const { return local_; }
  void WhenComplete(LocalCompletion&& completion);

  // A message in two steps: BeginMessage returns space for its body (kSlotBytes minus the header), SendMessage sends it
  // with its length. No other call on this link may come in between.
  Error BeginMessage(uint8_t** room);
  // `reply` null: no reply is wanted. This object takes over the reply's registration. `urgent`: wakes the target's
  // service if it sleeps. `behind_reads`: the message is sent after earlier Reads have completed.
  struct SendOptions {
    const Reply* reply = nullptr;
    bool urgent = true;
    bool behind_reads = false;
    LockKind epoch = LockKind::kNone;  // the message is the whole epoch of this lock; a `reply` is wanted
    bool waits = false;                // until Ring(), as Writes do
    bool promises = false;             // of a fence (fence_notice.h)
  };
  Error SendMessage(MessageKind kind, uint32_t window, size_t body_bytes, const SendOptions& options);
  // Whether the message before can also announce a fence of `window` at the target: it is a Get of that window, is
  // still waiting for Ring(), and nothing follows it.
  bool MayJoinFence(uint32_t window) const;
  // Adds the announcement and sends that message. `reply`: as in SendOptions.
  Error JoinFence(uint32_t number, bool promises, const Reply* reply);
  // Sends a message without a body.
  Error SendPlain(MessageKind kind, uint32_t window, const SendOptions& options);

  // Hands the collected work requests to the RNIC.
  Error Ring();

  // Whether messages that change the target's memory may not have been applied yet. A Write or Read posted now may
  // overtake them.
  bool changes_pending() const { return changes_pending_; }
  // Waits until they have been applied.
  Error AwaitChanges();
  // Whether a small operation should also be a message instead of waiting for them. True a few times in a row; for more
  // operations it is faster to wait and use RDMA.
  bool TakeDetour() { return detours_++ < kMostDetours; }

  // What must be reached so that all requests posted so far are complete at the origin (or, with `remote`, also at the
  // target).
  struct Mark {
    uint64_t number = 0;
    uint32_t messages = 0;
    bool remote = false;
  };
  Error StartFlush(bool remote, Mark* mark);
  bool Flushed(const Mark& mark) const;
  // Whether a fence of the window may promise that the next one asks (fence_notice.h). Only one window at a time may,
  // and only if the connection has space for other messages beside the one that stays unanswered until the target comes
  // to its fence.
  bool MayPromise(uint32_t window) const { return room_ >= kRoomToPromise && (promised_ == 0 || promised_ == window); }
  void SetPromised(uint32_t window, bool promised) {
    if (promised) {
      promised_ = window;
    } else if (promised_ == window) {
      promised_ = 0;
    }
  }
  bool awaits_data() const { return reads_outstanding() || replies_expected_ > 0; }
  bool reads_outstanding() const { return reads_posted_ > completed(); }

  void OnCompletion(const ibv_wc& completion);
  // Completes all requests with an error. The target counts as dead.
  void Break(std::string why);

  static constexpr uint32_t kDepth = 32;      // of the send queue
  // longer Writes, and messages for more data, are sent at once, so that the data is in flight early
  static constexpr size_t kWaits = 32768;

 private:
  enum class State : uint8_t { kNew, kConnecting, kGreeting, kUp, kBroken };
  static constexpr uint16_t kNoSlot = UINT16_MAX;
  struct PendingReply {
    bool in_use = false;
    uint16_t fence_slot = kNoSlot;  // of a Get that carried a fence: its reply may also be the reply to the fence
    Reply reply;
  };

  uint64_t completed() const { return order_.completed(); }
  // Functions used while connecting.
  void Unreachable(std::string why, bool wants_room);
  void OnFailure(const rdma_cm_event& event);
  bool MakeQueuePair();
  void Greet();
  Error PostEmptyWrite(bool signaled);
  Error WaitForRoom();
  ibv_send_wr& Add(bool signaled);
  Error RingIfFull();
  Error ExpectReply(const Reply* reply, uint16_t* slot);
  void OnReply(const uint8_t* bytes, size_t size);
  void FinishReply(PendingReply& pending, const Error& error, ByteSpan data, ReplyStatus status);
  void FinishLocal(LocalCompletion& completion, const Error& error);
  Error PostReceive();
  bool HasRoom() const;
  Error GrowRoom();
  void Consumed(uint32_t messages);

  static_assert(kDepth <= SendOrder::kMostReads);
  static constexpr uint32_t kBatch = 16;       // most work requests that wait for Ring()
  static constexpr uint32_t kUnsignaled = 16;  // most work requests without a completion
  static constexpr uint32_t kMostDetours = 4;
  static constexpr uint32_t kRoomToPromise = 4;

  Device& device_;
  const ProcessId process_;
  State state_ = State::kNew;
  std::string why_;  // if broken
  bool unreachable_ = false, wants_room_ = false;
  rdma_cm_id* id_ = nullptr;
  ibv_qp* qp_ = nullptr;
  uint32_t inline_room_ = 0;
  bool has_atomics_ = false;
  Acquaintance said_{};  // what was said when the connection was made

  // Send queue. Work requests are numbered from 1.
  uint64_t posted_ = 0, signaled_ = 0;
  SendOrder order_;
  int64_t uncompleted_ = 0;       // signaled requests that have not completed
  uint64_t local_ = 0;            // the last one that uses memory of the program
  uint64_t reads_posted_ = 0;     // the last Read
  uint64_t atomics_posted_ = 0;   // the last atomic
  bool writes_unproved_ = false;  // Writes were posted since the last proof of arrival
  std::deque<LocalCompletion> local_completions_;
  struct Waiting {
    ibv_send_wr request;
    ibv_sge piece;
  };
  std::array<Waiting, kBatch> waiting_;
  uint32_t waiting_count_ = 0;
  size_t waiting_bytes_ = 0;                 // of messages and Writes that are not inline
  std::unique_ptr<uint8_t[]> inline_bytes_;  // kBatch times inline_room_

  // Messages and replies.
  uint32_t sent_ = 0, consumed_ = 0;  // modulo 2^32
  bool last_is_answered_ = false;     // the target answers the newest message as soon as it comes to it
  bool writes_since_message_ = false;
  bool get_waits_last_ = false;  // the last waiting request is an inline message of a Get with space behind it
  MessageHeader get_header_;     // the header of that message
  uint32_t last_change_ = 0;      // value of sent_ after the newest message that changes memory
  bool changes_pending_ = false;  // consumed_ has not reached last_change_
  uint32_t detours_ = 0;          // since the last accumulate, or since the last time that no change was pending
  int replies_expected_ = 0;
  int sinks_expected_ = 0;  // replies that carry data, or that follow data
  uint32_t promised_ = 0;   // the window whose next fence asks for a reply; 0: none
  std::array<PendingReply, kSlots> pending_;
  uint32_t room_ = kFirstRoom;  // messages that may be in flight
  bool stalled_ = false;        // a send waited for space since the last call for more of it
  // Buffers of the device's pool. They are freed when the queue pair is gone, at the latest.
  BufferPool::Buffer building_;                       // from BeginMessage to SendMessage
  std::array<BufferPool::Buffer, kSlots> in_flight_;  // messages that were not inline, by message number
  std::array<BufferPool::Buffer, kSlots> receives_;   // posted; at least as many as expected replies
  uint32_t receives_posted_ = 0;                      // so far, modulo 2^32
  uint32_t receives_used_ = 0;                        // how many of them were consumed
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_LINK_H_
