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

// The target's side: accepts connections of the job's other processes and answers their messages. It runs on a thread
// of its own, which sleeps while nothing happens. A program that waits inside MPI can run it on its own thread instead
// (TryPoll), which is faster; that includes waits for other things, from the first message on that arrives meanwhile.
// RDMA Writes and Reads need neither thread. All data of a peer is checked; an invalid message ends that peer's
// connection.
class Service {
 public:
  explicit Service(Device& device);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // The event channel for the listener.
  rdma_event_channel* events() const { return events_; }
  // Takes ownership of the listener. `limits`: of the device.
  Error Start(rdma_cm_id* listener, const ibv_device_attr& limits);
  void Stop();

  // Registers windows, which origins may then name. The mutex guards the members that TargetWindow lists.
  uint32_t Add(TargetWindow* window);
  void Remove(uint32_t window);
  std::mutex& mutex() { return mutex_; }

  // A lock of this process's part of a window was released on this host. Requests by message for it need not wait until
  // the thread notices.
  void LockGivenBack() {
    if (!locks_wait_.load(std::memory_order_relaxed)) return;
    std::lock_guard lock(mutex_);
    RetryLocks();
  }

  // This process comes to a fence of `window`; a reply that `rank` waits for is sent. `operations`, `gets`: see
  // FenceNotice::Enter.
  FenceNotice::Entry EnterFence(TargetWindow& window, int rank, bool operations, bool gets);
  // The reply to the message of fence `number`, in which this process asked for one.
  void OnFenceReply(uint32_t window, ProcessId process, uint32_t number, ReplyStatus status);

  // Closes the connections that `process` has initiated. It may connect again.
  void Forget(ProcessId process);

  // Handles pending messages, unless another thread is doing so. Returns whether there were any.
  bool TryPoll();
  // How often the service's own thread has found messages. The number wraps around.
  uint32_t batches() const { return batches_.load(std::memory_order_relaxed); }
  // True: a thread waits inside MPI and calls TryPoll all the time, so that the service's own thread need not wake up
  // for messages. False: no longer.
  void SetAttended(bool attended) { attended_.store(attended, std::memory_order_relaxed); }
  // True: waits of any kind poll the service in each round. False: they poll it seldom.
  void SetLively(bool lively) { lively_.store(lively, std::memory_order_relaxed); }
  // True: a thread goes to sleep and must be woken for every message. False: it has woken up.
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
  bool OnLate(Incoming& incoming, const MessageHeader& header, ByteSpan body);  // to a window that no longer exists
  bool OnMessageTo(TargetWindow& window, int rank, Incoming& incoming, const MessageHeader& message, ByteSpan body);
  bool OnGetAndFence(Incoming& incoming, const MessageHeader& header, TargetWindow& window, int rank, ByteSpan body);
  // `of_fence`: the reply is also the one to the fence.
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
  bool tells_solicited_ = true;  // the RNIC can report solicited messages only, on request
  int stop_fd_ = -1;
  pthread_t thread_{};
  bool running_ = false;
  std::atomic<bool> stopping_{false};
  // Hints for the service's thread, which checks again within kRestMs.
  std::atomic<bool> waiter_asleep_{false};
  std::atomic<bool> attended_{false};
  std::atomic<bool> lively_{false};
  std::atomic<uint32_t> polls_{0};  // number of polls by TryPoll
  std::atomic<uint32_t> batches_{0};

  std::mutex mutex_;  // guards the members below
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* messages_ = nullptr;  // completions of received messages
  ibv_cq* sent_ = nullptr;      // completions of replies_
  // Receives, one for each message that may be in flight, and replies. A connection gets more of them when its origin
  // needs more.
  std::unique_ptr<BufferPool> buffers_;
  std::unique_ptr<BufferPool> short_;  // of kFirstBytes, for connections that have only the first room
  std::unique_ptr<uint8_t[]> aside_;  // kSlotBytes: holds a message whose buffer was already posted as the next receive
  int most_entries_ = 1;               // limit of the RNIC's completion queues
  uint64_t room_given_ = 0;            // of all connections together; messages_ has one entry for each
  uint64_t control_ = 0;               // read by the origins' proofs of arrival
  ibv_mr* control_mr_ = nullptr;
  IncomingTable connections_;
  ReplySender replies_{connections_};
  std::set<ProcessId> met_;  // processes that have connected
  RefusedRequests refused_;  // requests of processes that have not
  std::unordered_map<uint32_t, TargetWindow*> windows_;
  uint32_t next_window_ = 1;
  // messages wait for locks that processes of this host may hold; the thread tries again every kRestMs
  std::atomic<bool> locks_wait_{false};
  HeldFences held_fences_;
  bool changed_ = false;  // something changed that a thread inside MPI may wait for
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_SERVICE_H_
