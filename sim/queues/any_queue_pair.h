#ifndef SIM_QUEUES_ANY_QUEUE_PAIR_H_
#define SIM_QUEUES_ANY_QUEUE_PAIR_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "llp/channel.h"
#include "sim/memory/memory.h"
#include "sim/queues/statistics.h"
#include "transport/network.h"

namespace weft::sim {

class AnyQueuePair;

// An entry of a queue pair in the list of a completion queue (CompletionQueue::AddErrand), whose lock guards it.
struct Errand {
  AnyQueuePair* queue_pair = nullptr;  // null: not attached
  Errand* next = nullptr;
  // Exchanged without the lock, with acquire and release. A thread that finds it true has told the poll that sets it to
  // false what there is to do.
  std::atomic<bool> listed{false};
};

// A queue pair of any service type, as verbs and completion queues use it: QueuePair (connected) or DatagramQueuePair
// (unreliable datagrams). Thread safe. Verbs return 0 or a positive errno.
class AnyQueuePair {
 public:
  virtual ~AnyQueuePair() = default;

  virtual ibv_qp_type type() const = 0;
  virtual uint32_t number() const = 0;  // 24 bits, unique in the process
  virtual const ibv_qp_cap& capabilities() const = 0;

  // `*bad` is the first work request that was not posted; with `all_or_nothing` (ibv_wr_complete) none is posted then.
  virtual int PostSend(ibv_send_wr* list, ibv_send_wr** bad, bool all_or_nothing) = 0;
  virtual int PostReceive(ibv_recv_wr* list, ibv_recv_wr** bad) = 0;
  // ibv_modify_qp(3). After EINVAL the queue pair is unchanged.
  virtual int Modify(const ibv_qp_attr& attributes, int mask) = 0;
  // Does not fill the cq and srq pointers of `init`; the caller does.
  virtual void Query(ibv_qp_attr* attributes, ibv_qp_init_attr* init) = 0;
  // Drops its completions and releases everything. The last call.
  virtual void Destroy() = 0;

  // Called by completion queues that were polled empty: moves the data that the network has, on the caller's thread,
  // unless another thread does. `spinning`: the call will be repeated at once.
  virtual void DriveInline(bool spinning) = 0;
  // Sends requests that were deferred for batching.
  virtual void FlushDeferred() = 0;
  // The program that called DriveInline() with `spinning` may sleep now.
  virtual void EndDrive() {}
  // Does the work that waited for the next poll that finds nothing. Returns false if another thread uses the queue
  // pair; call again then.
  virtual bool RunErrand() {
    FlushDeferred();
    return true;
  }
  virtual transport::Network& network() const = 0;
  // The process ends: tells the peer what it must know. Waits for a thread that uses the queue pair, at most until
  // `until`.
  virtual void OnExit(std::chrono::steady_clock::time_point until) { (void)until; }

  // The region goes away. After return Weft touches no byte of it, and the peer begins no new access. The result,
  // unless null, tells when accesses that the peer has begun are over.
  virtual std::shared_ptr<llp::LentMemory> ForgetRegion(const RegionInfo& gone) = 0;

  // For `weft stat`.
  virtual QueuePairSnapshot Snapshot() { return {.number = number(), .type = type()}; }
  // The fault plan has changed.
  virtual void ApplyFaults() {}
  // The device failed for good (faults: device_fatal).
  virtual void FailFatally(const std::string& device) { (void)device; }
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_ANY_QUEUE_PAIR_H_
