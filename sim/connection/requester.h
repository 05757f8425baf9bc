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

// What a queue pair wants of its peer: the work requests of its send queue, from the first look at one to its completion. Guarded by the
// queue pair's engine, but for what producers do with queue().
class Requester {
 public:
  // `options` and what else it refers to outlive it. `roce`: the persona.
  Requester(MemoryTable& memory, const QueuePairOptions& options, const MemoryUser& user, bool roce, Completer& completer);

  SendQueue& queue() { return sends_; }
  const SendQueue& queue() const { return sends_; }
  SendEntry& oldest() { return sends_.entry(sends_.retired()); }
  bool empty() const { return sends_.retired() == sends_.posted(); }
  bool all_started() const { return sends_.started == sends_.posted(); }
  bool all_begun_retired() const { return sends_.retired() == sends_.started; }

  // What the connection of the moment allows.
  struct Terms {
    bool reads = false;     // RDMA Reads and atomics (ORD is not 0)
    bool extended = false;  // immediate data and atomics
  };
  // The oldest request that did not begin, if its count is below `limit` and it can be carried out; those that need no peer are carried out on
  // the way. Null: none, or revocation_waits(), or failed(). `peer`: for faults.
  rdmap::Request* Next(const Terms& terms, uint64_t limit, const transport::SocketAddress& peer);
  void Started() {
    if (TraceEnabled()) [[unlikely]] TraceBegin();
    ++sends_.started;
  }
  // The request is done: it, and what is done behind it, completes in order.
  void Done(rdmap::Request& request);
  void Retire();
  // `count` and what follows it did not begin. How many had.
  uint64_t Rewind(uint64_t count);
  // Completes all that is posted, in error: with `blame` the request with count `at`, or the oldest.
  void Flush(std::optional<ibv_wc_status> blame, std::optional<uint64_t> at = std::nullopt);
  // Completes all that is posted as if it had been sent.
  void CompleteAll();
  void Clear();

  // The oldest request that is not retired cannot be carried out; its status says why, Explain() in words.
  bool failed() const { return failed_; }
  void ForgetFailure() { failed_ = false; }
  std::string Explain() const;

  // The count of a request that began.
  uint64_t CountOf(const rdmap::Request& request) const;
  // The request that a Terminate of the peer is about: `next` is the first number that the peer did not acknowledge.
  uint64_t BlamedBy(const rdmap::TerminateMessage& terminate, uint32_t next) const;
  // What that means for it.
  ibv_wc_status BlameFor(const rdmap::TerminateMessage& terminate, uint64_t blamed) const;
  // What the peer carried out although it did not say so any more, up to message number `received`, is done.
  void AcceptUpTo(uint32_t received);
  // The oldest that began, is not done, and has payload to send.
  std::optional<uint64_t> OldestWithPayload() const;

  // A request that takes memory away from peers, and may have to wait until other queue pairs are through with it.
  struct Revocation {
    uint64_t count;
    RegionInfo gone;
  };
  bool revocation_waits() const { return revocation_ && !revocation_begun_; }
  Revocation BeginRevocation();
  void EndRevocation(const Revocation& revocation);
  // The request that revoked is done.
  void DoneRevoking(uint64_t count);

  // Requests that wait look the region up again. The count of the oldest that began and uses it.
  std::optional<uint64_t> ForgetRegion(const RegionInfo& gone);

 private:
  bool Resolve(uint64_t count, const Terms& terms);
  void TraceBegin() const;
  bool IsAlone(uint64_t count) const;
  // Carry out an IBV_WR_BIND_MW, an IBV_WR_LOCAL_INV, the oldest that was not started; false: not yet, or its status says why not.
  bool BindWindow(uint64_t count);
  bool InvalidateLocally(uint64_t count);
  // The request is done when nobody touches `gone` any more, which is seen to once the engine is let go.
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

// What the peer's Terminate means for the request that it is about, whatever that is.
ibv_wc_status BlameFor(const rdmap::TerminateMessage& terminate);

}  // namespace weft::sim

#endif  // SIM_CONNECTION_REQUESTER_H_
