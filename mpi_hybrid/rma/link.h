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

// Somebody on the stack who waits for a reply.
struct ReplyWaiter {
  bool done = false;
  bool failed = false;  // the connection broke
  ReplyStatus status = ReplyStatus::kDone;
  uint8_t data[32] = {};
  size_t bytes = 0;
};

// Data of the program that a reply, or a Read into a bounce buffer, fills: `bytes` from `position` on in the order of
// the type map.
struct Sink {
  void* buffer = nullptr;
  MPI_Aint count = 0;
  Ref<const Datatype> type;  // null: none
  MPI_Aint position = 0;
  size_t bytes = 0;
};

// What a reply is for.
struct Reply {
  Sink sink;
  ReplyWaiter* waiter = nullptr;
  RmaRequest* request = nullptr;  // one part of it
  bool* out_of_range = nullptr;   // set when the target says so; outlives the reply
  Registration* filled = nullptr; // memory of the program, which an RDMA Write of the target fills before the reply; released with it
  uint32_t fenced = 0;            // this process's window, in whose fence the reply is the target's own notice (fence_notice.h); 0: none
  uint32_t fence = 0;             // ... its number
};

// What is due when the work requests up to a number completed.
struct LocalCompletion {
  uint64_t number = 0;
  RmaRequest* request = nullptr;
  Registration* registration = nullptr;
  BufferPool::Buffer bounce;  // given back, after `sink` was filled from it
  Sink sink;
};

// The connection over which this process works on one target: a queue pair of which it is the initiator. RDMA Writes
// and Reads and messages (wire.h) go out in the order of the calls, and the target sees them in that order. Writes and
// Reads of up to 32 KiB, and messages that others follow, wait for company until Ring(): one system call for all of
// them; a Read does so only while another one is on its way. Guarded by the library's lock. Calls may wait for progress
// when queues are full.
class Link {
 public:
  Link(Device& device, ProcessId process);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void StartConnect(const transport::SocketAddress& from, const transport::SocketAddress& to);
  // An event of the connection manager for this link; acknowledged by the caller.
  void OnEvent(const rdma_cm_event& event);
  bool connecting() const { return state_ == State::kConnecting || greeting(); }
  // The connection stands, and its first message, before which nothing else goes out, is not answered yet (Device::greets).
  bool greeting() const { return state_ == State::kGreeting; }
  // While greeting: sends something that changes nothing at the target.
  void Nudge();
  bool up() const { return state_ == State::kUp; }
  bool broken() const { return state_ == State::kBroken; }
  // Broken, but never up, for a reason that does not say that the target is gone; whether it is want of room, here or
  // there, so that another link may come up.
  bool unreachable() const { return broken() && unreachable_; }
  bool wants_room() const { return wants_room_; }
  // ClassOfGone (p2p/message.h), when broken; MPI_ERR_OTHER, when unreachable.
  Error failure() const;
  ProcessId process() const { return process_; }

  // RDMA. `bytes` at most Device::max_message(). Small ones (`bytes` <= inline_room()) are copied, and complete locally
  // with the call.
  uint32_t inline_room() const { return inline_room_; }
  Error Write(const void* from, uint32_t key, uint64_t to, uint32_t to_key, size_t bytes);
  Error Read(void* into, uint32_t key, uint64_t from, uint32_t from_key, size_t bytes);
  // Number of the last work request. WhenComplete may be called only with one that is signaled or behind which one will
  // be.
  uint64_t last() const { return posted_; }
  // ... of those that work on memory of the program, which are signaled.
  uint64_t last_local() const { return local_; }
  void WhenComplete(LocalCompletion&& completion);

  // A message in two steps: room for its body (kSlotBytes less the header), then its length. Nothing may come between
  // them on this link.
  Error BeginMessage(uint8_t** room);
  // `reply` null: no reply is wanted; its registration is this object's from the call on. `urgent`: wakes the target's service if it sleeps. `behind_reads`: goes out when
  // Reads posted before have completed.
  struct SendOptions {
    const Reply* reply = nullptr;
    bool urgent = true;
    bool behind_reads = false;
    LockKind epoch = LockKind::kNone;  // of which the message is all; `reply` is wanted
    bool waits = false;                // for company, as Writes do
    bool promises = false;             // of a fence (fence_notice.h)
  };
  Error SendMessage(MessageKind kind, uint32_t window, size_t body_bytes, const SendOptions& options);
  // Whether a fence of `window` at the target can be told in the message before it: a Get of that window, which waits for company, with nothing behind it.
  bool MayJoinFence(uint32_t window) const;
  // Tells it, and sends that message. `reply`: as of SendOptions.
  Error JoinFence(uint32_t number, bool promises, const Reply* reply);
  // One without a body.
  Error SendPlain(MessageKind kind, uint32_t window, const SendOptions& options);

  // Hands what waits to the RNIC.
  Error Ring();

  // Messages were sent that change the target's memory and are not known to have been applied: a Write or Read that is
  // posted now may overtake them.
  bool changes_pending() const { return changes_pending_; }
  // Waits for these.
  Error AwaitChanges();
  // Whether a small operation should be a message, too, instead of waiting for these. A few in a row; more are faster
  // as RDMA, after a wait.
  bool TakeDetour() { return detours_++ < kMostDetours; }

  // What has to be seen before all that was posted so far is complete at the origin, or at the target too.
  struct Mark {
    uint64_t number = 0;
    uint32_t messages = 0;
    bool remote = false;
  };
  Error StartFlush(bool remote, Mark* mark);
  bool Flushed(const Mark& mark) const;
  // Whether a fence of the window may promise that the next one asks (fence_notice.h): one window at a time, on a connection with room for messages
  // beside the one that is not answered before the target comes to its fence.
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
  // Completes everything with an error; the target is taken for dead.
  void Break(std::string why);

  static constexpr uint32_t kDepth = 32;      // of the send queue
  static constexpr size_t kWaits = 32768;     // longer Writes, and messages for more data, go out at once, for the data to be under way early

 private:
  enum class State : uint8_t { kNew, kConnecting, kGreeting, kUp, kBroken };
  static constexpr uint16_t kNoSlot = UINT16_MAX;
  struct PendingReply {
    bool in_use = false;
    uint16_t fence_slot = kNoSlot;  // of a Get: the fence came with it, and the reply may be that to the fence, too
    Reply reply;
  };

  uint64_t completed() const { return order_.completed(); }
  // While connecting.
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
  static constexpr uint32_t kBatch = 16;       // most that wait for Ring()
  static constexpr uint32_t kUnsignaled = 16;  // most work requests without a completion
  static constexpr uint32_t kMostDetours = 4;
  static constexpr uint32_t kRoomToPromise = 4;

  Device& device_;
  const ProcessId process_;
  State state_ = State::kNew;
  std::string why_;  // broken
  bool unreachable_ = false, wants_room_ = false;
  rdma_cm_id* id_ = nullptr;
  ibv_qp* qp_ = nullptr;
  uint32_t inline_room_ = 0;
  Acquaintance said_{};  // when the connection was made

  // Send queue: numbers count work requests from 1.
  uint64_t posted_ = 0, signaled_ = 0;
  SendOrder order_;
  int64_t uncompleted_ = 0;       // signaled ones
  uint64_t local_ = 0;            // the last that works on memory of the program
  uint64_t reads_posted_ = 0;     // the last Read
  bool writes_unproved_ = false;  // Writes since the last proof that they arrived
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
  bool last_is_answered_ = false;     // the newest message, as soon as the target comes to it
  bool writes_since_message_ = false;
  bool get_waits_last_ = false;  // of what waits the last is a Get's inline message with room behind it
  MessageHeader get_header_;     // ... its header
  uint32_t last_change_ = 0;      // sent_ behind the newest message that changes memory
  bool changes_pending_ = false;  // consumed_ has not come there
  uint32_t detours_ = 0;          // since the last accumulate, or the last time that nothing was pending
  int replies_expected_ = 0;
  int sinks_expected_ = 0;  // replies that carry data, or come behind them
  uint32_t promised_ = 0;   // the window whose next fence asks; 0: none
  std::array<PendingReply, kSlots> pending_;
  uint32_t room_ = kFirstRoom;  // messages that may be in flight
  bool stalled_ = false;        // for want of room, since it was last asked for
  // Of the device's pool; given back when the queue pair is gone, at the latest.
  BufferPool::Buffer building_;                       // from BeginMessage to SendMessage
  std::array<BufferPool::Buffer, kSlots> in_flight_;  // messages that were not inline, by their number
  std::array<BufferPool::Buffer, kSlots> receives_;   // posted: at least as many as replies are expected
  uint32_t receives_posted_ = 0;                      // so far, modulo 2^32
  uint32_t receives_used_ = 0;                        // of these
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_LINK_H_
