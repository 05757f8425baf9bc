#ifndef SIM_CONNECTION_REQUESTER_H_
#define SIM_CONNECTION_REQUESTER_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/log.h"
#include "rdmap/request.h"
#include "rdmap/terminate.h"
#include "sim/memory/memory.h"
#include "sim/memory/recent_regions.h"
#include "sim/connection/completer.h"
#include "sim/queues/queue_pair_options.h"
#include "sim/queues/send_queue.h"

namespace weft::sim {

// The requests of a queue pair to its peer: the work requests of its send queue, from their start to their completion.
// Guarded by the queue pair's engine, except for what producers do with queue().
class Requester {
 public:
  // `options` and the other references outlive it. `roce`: the persona.
  Requester(MemoryTable& memory, const QueuePairOptions& options, const MemoryUser& user, bool roce, Completer& completer);

  SendQueue& queue() { return sends_; }
  const SendQueue& queue() const { return sends_; }
  SendEntry& oldest() { return sends_.entry(sends_.retired()); }
  bool empty() const { return sends_.retired() == sends_.posted(); }
  bool all_started() const { return sends_.started == sends_.posted(); }
  bool all_begun_retired() const { return sends_.retired() == sends_.started; }

  // What the current connection allows.
  struct Terms {
    bool reads = false;     // RDMA Reads and atomics (ORD is not 0)
    bool extended = false;  // immediate data
    bool atomics = false;
  };
  // Returns the oldest request that has not begun, if its count is below `limit` and it can be carried out. Requests
  // that need no peer are carried out on the way. nullptr: there is none, revocation_waits(), or failed(). `peer`: for
  // faults.
  rdmap::Request* Next(const Terms& terms, uint64_t limit, const transport::SocketAddress& peer);
  void Started() {
    if (TraceEnabled()) [[unlikely]] TraceBegin();
    ++sends_.started;
  }
  // The request is done. It and later requests that are done complete in order.
  void Done(rdmap::Request& request);
  void Retire();
  // Request `count` and those behind it have not begun. Returns how many had.
  uint64_t Rewind(uint64_t count);
  // Completes all posted requests with an error. `blame` is the status of the request with count `at`, or of the
  // oldest.
  void Flush(std::optional<ibv_wc_status> blame, std::optional<uint64_t> at = std::nullopt);
  // Completes all posted requests as if they had been sent.
  void CompleteAll();
  void Clear();

  // The oldest request that is not retired cannot be carried out. Its status says why; Explain() describes it.
  bool failed() const { return failed_; }
  void ForgetFailure() { failed_ = false; }
  std::string Explain() const;

  // The count of a request that has begun.
  uint64_t CountOf(const rdmap::Request& request) const;
  // The request that a Terminate of the peer is about. `next`: the first number that the peer has not acknowledged.
  uint64_t BlamedBy(const rdmap::TerminateMessage& terminate, uint32_t next) const;
  // The resulting status of that request.
  ibv_wc_status BlameFor(const rdmap::TerminateMessage& terminate, uint64_t blamed) const;
  // Requests up to message number `received` are done: the peer carried them out, although it did not acknowledge them.
  void AcceptUpTo(uint32_t received);
  // The oldest request that has begun, is not done, and has payload to send.
  std::optional<uint64_t> OldestWithPayload() const;

  // A request that revokes peers' access to memory. It may have to wait until other queue pairs have stopped using the
  // memory.
  struct Revocation {
    uint64_t count;
    RegionInfo gone;
  };
  bool revocation_waits() const { return revocation_ && !revocation_begun_; }
  Revocation BeginRevocation();
  void EndRevocation(const Revocation& revocation);
  // The revoking request is done.
  void DoneRevoking(uint64_t count);

  // Waiting requests look the region up again. Returns the count of the oldest request that has begun and uses it.
  std::optional<uint64_t> ForgetRegion(const RegionInfo& gone);

 private:
  bool Resolve(uint64_t count, const Terms& terms);
  void TraceBegin() const;
  bool IsAlone(uint64_t count) const;
  // Carry out an IBV_WR_BIND_MW or IBV_WR_LOCAL_INV, the oldest request not started. Return false if that must wait, or
  // failed; the status then says why.
  bool BindWindow(uint64_t count);
  bool InvalidateLocally(uint64_t count);
  // The request is done when nobody uses `gone` any more. This is arranged once the engine is released.
  void RevokeLater(uint64_t count, const RegionInfo& gone);
  void Complete(SendEntry& entry);
  bool InjectStatus(SendEntry& entry, const transport::SocketAddress& peer);

  MemoryTable& memory_;
  const QueuePairOptions& options_;
  const MemoryUser user_;
  const bool roce_;
  Completer& completer_;
  RecentRegions recent_;
  SendQueue sends_;
  bool failed_ = false;
  std::optional<Revocation> revocation_;
  bool revocation_begun_ = false;
};

// The status for the request that a Terminate of the peer is about, whichever that is.
ibv_wc_status BlameFor(const rdmap::TerminateMessage& terminate);

}  // namespace weft::sim

#endif  // SIM_CONNECTION_REQUESTER_H_
