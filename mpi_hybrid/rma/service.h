#ifndef MPI_HYBRID_RMA_SERVICE_H_
#define MPI_HYBRID_RMA_SERVICE_H_

#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "mpi_hybrid/comm/group.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/rma/fence_notice.h"
#include "mpi_hybrid/rma/held_fences.h"
#include "mpi_hybrid/rma/incoming.h"
#include "mpi_hybrid/rma/refused_requests.h"
#include "mpi_hybrid/rma/registration.h"
#include "mpi_hybrid/rma/reply_sender.h"
#include "mpi_hybrid/rma/target_window.h"
#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {

class Device;

// The target's side: accepts connections of the job's other processes and answers their messages, on a thread of its
// own that sleeps while nothing happens, or on the thread of a program that waits inside MPI (TryPoll), which is
// faster: also if it waits for something else, from the first message on that came meanwhile. RDMA Writes and Reads need neither. What a peer sends is checked; a bad message ends that peer's connection.
class Service {
 public:
  explicit Service(Device& device);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // The channel that the listener belongs to.
  rdma_event_channel* events() const { return events_; }
  // Takes the listener. `limits`: of the device.
  Error Start(rdma_cm_id* listener, const ibv_device_attr& limits);
  void Stop();

  // Windows that origins may name. The mutex guards what TargetWindow says it does.
  uint32_t Add(TargetWindow* window);
  void Remove(uint32_t window);
  std::mutex& mutex() { return mutex_; }

  // A lock of this process's part of a window was given back here: those that ask for it by messages need not wait for
  // the thread to notice.
  void LockGivenBack() {
    if (!locks_wait_.load(std::memory_order_relaxed)) return;
    std::lock_guard lock(mutex_);
    RetryLocks();
  }

  // This process comes to a fence of `window`; the reply that `rank` waits for goes out. `operations`, `gets`: see FenceNotice::Enter.
  FenceNotice::Entry EnterFence(TargetWindow& window, int rank, bool operations, bool gets);
  // The reply to a message of such a fence, number `number`, with which this process asked.
  void OnFenceReply(uint32_t window, ProcessId process, uint32_t number, ReplyStatus status);

  // Closes the connections of which `process` is the initiator; it may connect anew.
  void Forget(ProcessId process);

  // Does what there is to do, unless another thread is at it; whether there was anything.
  bool TryPoll();
  // So many times the service's own thread found messages. It wraps.
  uint32_t batches() const { return batches_.load(std::memory_order_relaxed); }
  // A thread waits inside MPI and calls TryPoll all the time, so that this one need not wake up for messages / no
  // longer does.
  void SetAttended(bool attended) { attended_.store(attended, std::memory_order_relaxed); }
  // Waits of any kind poll here in each round / seldom.
  void SetLively(bool lively) { lively_.store(lively, std::memory_order_relaxed); }
  // A thread goes to sleep and wants to hear of every message / has woken up.
  void SetWaiter(bool asleep);

 private:
  void Run();
  bool LeaveToOthers(uint32_t* polls_seen) const;
  void AskForEvent();
  void OnConnectionEvent();
  void OnRequest(rdma_cm_id* id, const rdma_conn_param& asked);
  Error Accept(Incoming& incoming, const rdma_conn_param& asked, const JobSecret& secret, Acquaintance& said);
  void Sweep();
  bool PollLocked();
  Error PostReceive(Incoming& incoming, uint32_t slot, const BufferPool::Buffer& buffer, bool is_short);
  BufferPool& PoolOf(bool is_short) { return is_short ? *short_ : *buffers_; }
  void GrowQueues();
  Error GiveRoom(Incoming& incoming, uint32_t room);
  void Close(Incoming& incoming);

  // False: the message is malformed.
  bool OnMessage(Incoming& incoming, ByteSpan message);
  bool OnLate(Incoming& incoming, const MessageHeader& header, ByteSpan body);  // to a window that was here
  bool OnMessageTo(TargetWindow& window, int rank, Incoming& incoming, const MessageHeader& message, ByteSpan body);
  bool OnGetAndFence(Incoming& incoming, const MessageHeader& header, TargetWindow& window, int rank, ByteSpan body);
  // `of_fence`: the reply is that to the fence, too.
  bool OnData(Incoming& incoming, const MessageHeader& header, const TargetWindow& window, ByteSpan body, bool of_fence = false);
  bool OnLock(Incoming& incoming, const MessageHeader& header, TargetWindow& window, int rank);
  bool OnFindRegion(Incoming& incoming, const MessageHeader& header, TargetWindow& window, ByteSpan body);
  bool OnFence(Incoming& incoming, const MessageHeader& header, TargetWindow& window, int rank, ByteSpan body);
  bool OnGetByWrite(Incoming& incoming, const MessageHeader& header, const TargetWindow& window, ByteSpan body, bool of_fence = false);
  void CountWhenTaken(Incoming& incoming, TargetWindow& window, int rank, uint32_t number);
  void CountFence(TargetWindow& window, int rank, uint32_t number);
  void CountHeldFences();
  void Answer(const FenceNotice::Answer& answer);
  void Grant(const std::vector<LockManager::Asker>& granted);
  void RetryLocks();
  void LookForDeadHolders();

  Device& device_;
  rdma_event_channel* events_ = nullptr;
  rdma_cm_id* listener_ = nullptr;
  uint32_t max_reads_ = 1;
  bool tells_solicited_ = true;  // the RNIC tells of solicited messages alone when asked to
  int stop_fd_ = -1;
  pthread_t thread_{};
  bool running_ = false;
  std::atomic<bool> stopping_{false};
  // Hints to the thread, which looks again within kRestMs.
  std::atomic<bool> waiter_asleep_{false};
  std::atomic<bool> attended_{false};
  std::atomic<bool> lively_{false};
  std::atomic<uint32_t> polls_{0};  // by TryPoll
  std::atomic<uint32_t> batches_{0};

  std::mutex mutex_;  // guards what follows
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* messages_ = nullptr;  // received
  ibv_cq* sent_ = nullptr;      // by replies_
  // Receives, one for each message that may be in flight, and replies; a connection has more of them as its origin
  // shows that it needs more.
  std::unique_ptr<BufferPool> buffers_;
  std::unique_ptr<BufferPool> short_;  // of kFirstBytes, for connections with no more than the first room
  std::unique_ptr<uint8_t[]> aside_;   // kSlotBytes: a message whose buffer is the next receive already
  int most_entries_ = 1;               // that the RNIC's queues can have
  uint64_t room_given_ = 0;            // all connections together; messages_ has an entry for each
  uint64_t control_ = 0;               // what proofs read
  ibv_mr* control_mr_ = nullptr;
  IncomingTable connections_;
  ReplySender replies_{connections_};
  std::set<ProcessId> met_;  // have connected
  RefusedRequests refused_;  // of those that have not
  std::unordered_map<uint32_t, TargetWindow*> windows_;
  uint32_t next_window_ = 1;
  std::atomic<bool> locks_wait_{false};  // messages ask for locks that processes of this host may have; the thread tries for them every kRestMs
  HeldFences held_fences_;
  bool changed_ = false;  // something that a thread inside MPI may wait for
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_SERVICE_H_
