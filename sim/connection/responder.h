#ifndef SIM_CONNECTION_RESPONDER_H_
#define SIM_CONNECTION_RESPONDER_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "rdmap/host.h"
#include "sim/memory/memory.h"
#include "sim/memory/recent_regions.h"
#include "sim/connection/completer.h"
#include "sim/queues/queue_pair_options.h"
#include "sim/queues/receive_queue.h"
#include "sim/queues/shared_receive_queue.h"

namespace weft::sim {

// What a queue pair does for its peer: receives, and memory that the peer reads, writes and changes. Guarded by the queue pair's engine, but
// for Post().
class Responder {
 public:
  // `options` and what else it refers to outlive it.
  Responder(MemoryTable& memory, const QueuePairOptions& options, const MemoryUser& user, Completer& completer);

  // 0 or an errno of ibv_post_recv, with `*bad`.
  int Post(ibv_recv_wr* list, ibv_recv_wr** bad) { return receives_.Post(list, bad); }

  // rdmap::Host's, for one stream. `rights`: IBV_ACCESS_REMOTE_* that the queue pair gives. `peer`: for faults.
  Result<uint8_t*, rdmap::AccessError> Resolve(ddp::STag stag, ddp::TaggedOffset offset, uint32_t length, rdmap::Access access, int rights);
  std::optional<llp::TaggedBuffer> OpenBuffer(ddp::STag stag, int rights);
  Result<uint64_t, rdmap::AccessError> Atomic(ddp::STag stag, ddp::TaggedOffset offset, const rdmap::AtomicOperation& operation, int rights);
  // `*gone`: what the peer cannot reach any more.
  std::optional<rdmap::AccessError> Invalidate(ddp::STag stag, RegionInfo* gone);
  std::optional<rdmap::ReceiveTarget> TakeReceive(uint64_t needed, const transport::SocketAddress& peer);
  // The receive fails if its memory is not as the program said.
  uint64_t ExtendReceive(uint64_t needed);
  void Received(const rdmap::ReceivedSend& message) { Complete(IBV_WC_SUCCESS, &message); }
  bool exhausted() const { return exhausted_; }  // the last message found no receive

  // XRC: the peer's next requests are for this shared receive queue. False: it is not in the domain.
  bool SelectTarget(uint32_t number);
  const std::shared_ptr<SharedReceiveQueue>& target() const { return target_; }
  void ForgetTargets();

  // A receive is being filled.
  bool filling() const { return receives_.taken != receives_.completed(); }
  // Completes the oldest receive with an error.
  void Fail(ibv_wc_status status) { Complete(status, nullptr); }
  // Completes the receive that the next message would have taken with an error, if there is one.
  void FailNext(ibv_wc_status status);
  void Flush();
  void Clear() { receives_.Clear(); }

  // The receive that is being filled names the region, in an element that bytes were placed into.
  bool IsFilling(const RegionInfo& region) const;
  // The windows through which the peer last reached the region; STag 0 stands for none.
  std::array<ddp::STag, 2> WindowsOf(const RegionInfo& region) const;

  const ReceiveQueue& queue() const { return receives_; }

 private:
  // The domain of the keys of receives, and of those that the peer names.
  const Pd& receive_pd() const {
    if (receiving_ != nullptr) return receiving_->pd();
    return options_.shared_receives ? options_.shared_receives->pd() : *options_.pd;
  }
  const Pd& remote_pd() const { return target_ != nullptr ? target_->pd() : *options_.pd; }
  // Moves the oldest receive of the shared queue to `receives_`; false: there is none.
  bool TakeShared();
  void Complete(ibv_wc_status status, const rdmap::ReceivedSend* message);
  // Failures on demand.
  bool InjectNotReady(const transport::SocketAddress& peer);
  ibv_wc_status InjectStatus(const transport::SocketAddress& peer);

  MemoryTable& memory_;
  const QueuePairOptions& options_;
  const MemoryUser user_;
  Completer& completer_;
  RecentRegions recent_;
  ReceiveQueue receives_;  // with a shared queue: what was taken from there
  // Of the receive that is being filled: how much of its memory was looked up, which is what messages need (IBTA volume 1 section 10.7.3.2
  // speaks of the data segments that are written, and adapters look at no others).
  struct Filling {
    int element = 0;      // those before it were looked up as a whole
    size_t piece = 0;     // of receives_.memory(); elements without bytes have none
    uint64_t before = 0;  // bytes in front of `element`
    uint64_t usable = 0;  // more than `before`: of `element` only so much is good, or was asked for
  } filling_;
  bool exhausted_ = false;
  // IBV_QPT_XRC_RECV: whom the peer's request is for, and from whom the receive is that is being filled.
  std::shared_ptr<SharedReceiveQueue> target_, receiving_;
  // The last windows that the peer wrote and read through, and their regions: when one of those goes, so does what is under way.
  struct WindowUse {
    ddp::STag window, region;
  };
  std::array<WindowUse, 2> window_uses_{};
};

}  // namespace weft::sim

#endif  // SIM_CONNECTION_RESPONDER_H_
