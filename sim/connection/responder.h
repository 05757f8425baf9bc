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

// What a queue pair does for its peer: receives, and memory that the peer reads, writes and changes. Guarded by the
// queue pair's engine, except for Post().
class Responder {
 public:
  // `options` and the other references outlive it.
  Responder(MemoryTable& memory, const QueuePairOptions& options, const MemoryUser& user, Completer& completer);

  // 0 or an errno of ibv_post_recv, with `*bad`.
  int Post(ibv_recv_wr* list, ibv_recv_wr** bad) { return receives_.Post(list, bad); }

  // See rdmap::Host; for one stream. `rights`: the IBV_ACCESS_REMOTE_* of the queue pair. `peer`: for faults.
  Result<uint8_t*, rdmap::AccessError> Resolve(ddp::STag stag, ddp::TaggedOffset offset, uint32_t length, rdmap::Access access, int rights);
  std::optional<llp::TaggedBuffer> OpenBuffer(ddp::STag stag, int rights);
  Result<uint64_t, rdmap::AccessError> Atomic(ddp::STag stag, ddp::TaggedOffset offset, const rdmap::AtomicOperation& operation, int rights);
  // Sets `*gone` to the memory that the peer can no longer access.
  std::optional<rdmap::AccessError> Invalidate(ddp::STag stag, RegionInfo* gone);
  std::optional<rdmap::ReceiveTarget> TakeReceive(uint64_t needed, const transport::SocketAddress& peer);
  // The receive fails if its memory is not what the program said.
  uint64_t ExtendReceive(uint64_t needed);
  void Received(const rdmap::ReceivedSend& message) { Complete(IBV_WC_SUCCESS, &message); }
  bool exhausted() const { return exhausted_; }  // the last message found no receive

  // XRC: the peer's next requests are for this shared receive queue. Returns false if it is not in the domain.
  bool SelectTarget(uint32_t number);
  const std::shared_ptr<SharedReceiveQueue>& target() const { return target_; }
  void ForgetTargets();

  // A receive is being filled.
  bool filling() const { return receives_.taken != receives_.completed(); }
  // Completes the oldest receive with an error.
  void Fail(ibv_wc_status status) { Complete(status, nullptr); }
  // Completes the receive that the next message would have taken, if there is one, with an error.
  void FailNext(ibv_wc_status status);
  void Flush();
  void Clear() { receives_.Clear(); }

  // Whether the receive that is being filled uses the region, in an element that bytes were placed into.
  bool IsFilling(const RegionInfo& region) const;
  // The windows through which the peer last accessed the region; STag 0: none.
  std::array<ddp::STag, 2> WindowsOf(const RegionInfo& region) const;

  const ReceiveQueue& queue() const { return receives_; }

 private:
  // The domain for the keys of receives, and for those that the peer names.
  const Pd& receive_pd() const {
    if (receiving_ != nullptr) return receiving_->pd();
    return options_.shared_receives ? options_.shared_receives->pd() : *options_.pd;
  }
  const Pd& remote_pd() const { return target_ != nullptr ? target_->pd() : *options_.pd; }
  // Moves the oldest receive of the shared queue to `receives_`. Returns false if there is none.
  bool TakeShared();
  void Complete(ibv_wc_status status, const rdmap::ReceivedSend* message);
  // Failures injected by faults.
  bool InjectNotReady(const transport::SocketAddress& peer);
  ibv_wc_status InjectStatus(const transport::SocketAddress& peer);

  MemoryTable& memory_;
  const QueuePairOptions& options_;
  const MemoryUser user_;
  Completer& completer_;
  RecentRegions recent_;
  ReceiveQueue receives_;  // with a shared queue: receives taken from it
  // For the receive that is being filled: how much of its memory was looked up. Only memory that messages need is
  // looked up (IBTA volume 1 section 10.7.3.2 speaks of the data segments that are written, and adapters check no
  // others).
  struct Filling {
    int element = 0;      // those before it were looked up completely
    size_t piece = 0;     // of receives_.memory(); elements without bytes have none
    uint64_t before = 0;  // bytes in front of `element`
    uint64_t usable = 0;  // more than `before`: this many bytes of `element` are valid, or were asked for
  } filling_;
  bool exhausted_ = false;
  // IBV_QPT_XRC_RECV: the target of the peer's request, and the queue of the receive that is being filled.
  std::shared_ptr<SharedReceiveQueue> target_, receiving_;
  // The last windows through which the peer wrote and read, and their regions. When one of these goes away, so does the
  // access in progress.
  struct WindowUse {
    ddp::STag window, region;
  };
  std::array<WindowUse, 2> window_uses_{};
};

}  // namespace weft::sim

#endif  // SIM_CONNECTION_RESPONDER_H_
