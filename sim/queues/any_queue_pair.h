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

// A queue pair's place in the list of a completion queue (CompletionQueue::AddErrand), whose lock guards it.
struct Errand {
  AnyQueuePair* queue_pair = nullptr;  // null: not attached
  Errand* next = nullptr;
  // Exchanged without the lock, with acquire and release: who finds it true has told the poll that sets it to false of what there is to do.
  std::atomic<bool> listed{false};
};

// What verbs and completion queues ask of a queue pair of whatever service type: QueuePair (reliable, connected) and
// DatagramQueuePair (unreliable datagrams). Thread safe. Verbs return 0 or a positive errno.
class AnyQueuePair {
 public:
  virtual ~AnyQueuePair() = default;

  virtual ibv_qp_type type() const = 0;
  virtual uint32_t number() const = 0;  // 24 bits, unique in the process
  virtual const ibv_qp_cap& capabilities() const = 0;

  // `*bad` is the first work request that was not posted; with `all_or_nothing` (ibv_wr_complete) none is posted then.
  virtual int PostSend(ibv_send_wr* list, ibv_send_wr** bad, bool all_or_nothing) = 0;
  virtual int PostReceive(ibv_recv_wr* list, ibv_recv_wr** bad) = 0;
  // ibv_modify_qp(3). EINVAL leaves the queue pair as it was.
  virtual int Modify(const ibv_qp_attr& attributes, int mask) = 0;
  virtual void Query(ibv_qp_attr* attributes, ibv_qp_init_attr* init) = 0;  // `init`'s cq and srq pointers are the caller's
  // Drops its completions and lets go of everything. Last call.
  virtual void Destroy() = 0;

  // For completion queues that were polled empty: moves what the network has, on the caller's thread, if nobody else is at it.
  // `spinning`: it will be called again at once.
  virtual void DriveInline(bool spinning) = 0;
  // Sends what was posted and not sent yet for the sake of batching.
  virtual void FlushDeferred() = 0;
  // The program that called DriveInline(), spinning, may sleep now.
  virtual void EndDrive() {}
  // ... and whatever else waited for the next poll that finds nothing. False: another thread is at the queue pair, and it is to be called again.
  virtual bool RunErrand() {
    FlushDeferred();
    return true;
  }
  virtual transport::Network& network() const = 0;
  // The process ends: tells the peer what it should know. A thread that is at the queue pair is waited for until then, and no longer.
  virtual void OnExit(std::chrono::steady_clock::time_point until) { (void)until; }

  // The region goes away: after return no byte of it is touched by us, and a peer begins nothing. What a peer has begun: the result, unless that is null,
  // says when it is over.
  virtual std::shared_ptr<llp::LentMemory> ForgetRegion(const RegionInfo& gone) = 0;

  // For `weft stat`.
  virtual QueuePairSnapshot Snapshot() { return {.number = number(), .type = type()}; }
  // The plan of faults changed.
  virtual void ApplyFaults() {}
  // The device failed for good (faults: device_fatal).
  virtual void FailFatally(const std::string& device) { (void)device; }
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_ANY_QUEUE_PAIR_H_
