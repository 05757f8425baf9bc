#ifndef VERBS_OBJECTS_H_
#define VERBS_OBJECTS_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/queues/any_queue_pair.h"
#include "faults/injector.h"
#include "sim/datagram/address_handle.h"
#include "sim/queues/completion_queue.h"
#include "sim/device/device.h"
#include "sim/queues/event_queue.h"
#include "sim/memory/memory.h"
#include "sim/device/port_monitor.h"
#include "sim/queue_pair/queue_pair.h"
#include "sim/rnic.h"
#include "sim/queues/shared_receive_queue.h"

// The objects behind the pointers that programs hold. Each object begins with the public structure, so a verb finds its
// object by a cast: the fast paths need no lookup.
namespace weft::verbs {

// Counts objects of one kind against the device's limit. Thread safe.
class Budget {
 public:
  explicit Budget(uint32_t limit) : limit_(limit) {}
  bool Take() {
    if (used_.fetch_add(1) < limit_) return true;
    used_.fetch_sub(1);
    return false;
  }
  void Return() { used_.fetch_sub(1); }

 private:
  const uint32_t limit_;
  std::atomic<uint32_t> used_{0};
};

inline constexpr uint64_t kMaxDeviceMemory = uint64_t{64} << 20;  // bytes, for all users of a device in the process

// A device exists until the process ends, so a stale ibv_device* never dangles. There is one for each interface name.
struct Device : ibv_device {
  // libmlx5 and libefa assume that every ibv_device begins rdma-core's private verbs_device, and compare the pointer
  // behind it with their own: zeros mean "not yours".
  unsigned char zeroes[512] = {};

  sim::DeviceInfo Info() const {
    std::lock_guard lock(mutex);
    return info;
  }
  // Updates the state of the interface. A GID keeps its index until the process ends: programs keep an index, as they
  // may with hardware, while addresses come and go. device.cc
  void Update(sim::DeviceInfo now);

  Budget pds{sim::kMaxPd};
  Budget cqs{sim::kMaxCq};
  Budget srqs{sim::kMaxSrq};
  Budget ahs{sim::kMaxAh};
  std::atomic<uint64_t> device_memory{0};  // bytes allocated by ibv_alloc_dm
  mutable std::mutex mutex;  // guards info
  sim::DeviceInfo info;      // as of the last enumeration
};
static_assert(alignof(ibv_device) <= 8 && sizeof(ibv_device) % 8 == 0);

struct AsyncEvent {
  ibv_event_type type;
  void* owner;  // ibv_cq*, ibv_qp* or ibv_srq*; nullptr for the port
};

// The queue behind context->async_fd. Queue pairs and completion queues share it, so it may outlive the context.
class AsyncEvents : public sim::AsyncSink, public sim::PortObserver {
 public:
  explicit AsyncEvents(Device* device) : device_(device) {}
  void OnAsyncEvent(ibv_event_type type, void* owner) override { queue.Push({type, owner}); }
  // Updates the device before the program hears of the change.
  void OnPortChange(const sim::DeviceInfo& now, const std::vector<ibv_event_type>& events) override {
    device_->Update(now);
    for (const ibv_event_type type : events) queue.Push({type, nullptr});
  }
  // Drops the events of `owner` that the program has not fetched; `owner` is about to be destroyed.
  void Forget(void* owner) {
    queue.Remove([owner](const AsyncEvent& event) { return event.owner == owner; });
  }
  sim::EventQueue<AsyncEvent> queue;

 private:
  Device* const device_;
};

struct Context : verbs_context {
  sim::Rnic* rnic = nullptr;
  std::shared_ptr<AsyncEvents> async;
  std::atomic<uint32_t> next_handle{1};
};

// ibv_alloc_td: the program promises how its threads use objects. Weft makes no use of it.
struct Td : ibv_td {
  std::atomic<int> users{0};  // parent domains; ibv_dealloc_td returns EBUSY if there are any
};

// The identity by which the kernel would know an object: its handle within its context. The public structures hold
// both, where a program can damage them; this is the value to compare with.
struct Identity {
  const ibv_context* context = nullptr;
  uint32_t handle = 0;
};

struct Pd : ibv_pd {
  Identity identity;
  // A parent domain shares this with its base, so that regions and queue pairs of both can be used together. Users are
  // counted separately.
  std::shared_ptr<sim::Pd> domain;
  Pd* base = nullptr;  // of a parent domain
  Td* td = nullptr;    // of a parent domain; may be null
};

// ibv_alloc_dm.
struct Dm : ibv_dm {
  Identity identity;
  uint8_t* bytes = nullptr;
  uint64_t length = 0;
  std::atomic<int> regions{0};  // registered regions; ibv_free_dm returns EBUSY if there are any
};

struct Mr : ibv_mr {
  Identity identity;
  int access = 0;
  uint64_t iova = 0;
  bool null = false;        // ibv_alloc_null_mr
  Dm* dm = nullptr;         // ibv_reg_dm_mr
};

struct Mw : ibv_mw {
  Identity identity;
};

struct Ah : sim::AddressHandle {
  Identity identity;
};

struct Channel : ibv_comp_channel {
  std::shared_ptr<sim::CompletionChannel> queue;
};

struct Cq : ibv_cq_ex {
  Identity identity;
  std::shared_ptr<sim::CompletionQueue> queue;
  // Number of events given to the program. Destruction waits until all of them are acknowledged.
  std::atomic<uint32_t> comp_events_delivered{0};
  std::atomic<uint32_t> async_events_delivered{0};
  Pd* parent = nullptr;  // the parent domain with which it was created
  bool single_threaded = false;
  // Locked between ibv_start_poll and ibv_end_poll, unless single-threaded: guards the members below.
  std::mutex polling;
  ibv_wc polled{};             // the completion being read
  uint64_t polled_stamp = 0;   // nanoseconds of CLOCK_MONOTONIC
};

struct Xrcd;  // verbs/xrc.h

struct Srq : ibv_srq {
  Identity identity;
  Xrcd* xrcd = nullptr;  // for type XRC
  ibv_cq* cq = nullptr;  // for type XRC
  std::shared_ptr<sim::SharedReceiveQueue> queue;
  std::atomic<uint32_t> async_events_delivered{0};
};

class SendBatch;

struct Qp : ibv_qp_ex {
  Identity identity;
  sim::AnyQueuePair* engine = nullptr;  // == shared.get(), for the fast paths
  std::shared_ptr<sim::AnyQueuePair> shared;
  std::atomic<uint32_t> async_events_delivered{0};
  Xrcd* xrcd = nullptr;  // IBV_QPT_XRC_RECV
  std::unique_ptr<SendBatch> batch;  // ibv_wr_*: only for queue pairs created with send_ops_flags
  Qp();
  ~Qp();
};

inline Context* FromPublic(ibv_context* context) {
  auto* bytes = reinterpret_cast<unsigned char*>(context) - offsetof(verbs_context, context);
  return static_cast<Context*>(reinterpret_cast<verbs_context*>(bytes));
}
inline Device* FromPublic(ibv_device* device) { return static_cast<Device*>(device); }
inline Td* FromPublic(ibv_td* td) { return static_cast<Td*>(td); }
inline Pd* FromPublic(ibv_pd* pd) { return static_cast<Pd*>(pd); }
inline Mr* FromPublic(ibv_mr* mr) { return static_cast<Mr*>(mr); }
inline Dm* FromPublic(ibv_dm* dm) { return static_cast<Dm*>(dm); }
inline Mw* FromPublic(ibv_mw* mw) { return static_cast<Mw*>(mw); }
inline Ah* FromPublic(ibv_ah* ah) { return static_cast<Ah*>(static_cast<sim::AddressHandle*>(ah)); }
inline Channel* FromPublic(ibv_comp_channel* channel) { return static_cast<Channel*>(channel); }
inline Srq* FromPublic(ibv_srq* srq) { return static_cast<Srq*>(srq); }
inline Cq* FromPublic(ibv_cq_ex* cq) { return static_cast<Cq*>(cq); }
inline Qp* FromPublic(ibv_qp_ex* qp) { return static_cast<Qp*>(qp); }

// ibv_cq is the beginning of ibv_cq_ex (ibv_cq_ex_to_cq relies on it); ibv_qp is the first member of ibv_qp_ex.
static_assert(offsetof(ibv_cq_ex, comp_mask) >= offsetof(ibv_cq, async_events_completed) + sizeof(uint32_t));
static_assert(offsetof(ibv_qp_ex, qp_base) == 0);
inline Cq* FromPublic(ibv_cq* cq) { return FromPublic(reinterpret_cast<ibv_cq_ex*>(cq)); }
inline Qp* FromPublic(ibv_qp* qp) { return FromPublic(reinterpret_cast<ibv_qp_ex*>(qp)); }
inline ibv_cq* ToPublic(Cq* cq) { return reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(cq)); }

// Registers a new object as `handle` in `context`.
template <typename Object>
void Name(Object& object, ibv_context* context, uint32_t handle) {
  object.context = context;
  object.handle = handle;
  object.identity = {.context = context, .handle = handle};
}
template <typename Object>
void Name(Object& object, ibv_context* context) {
  Name(object, context, FromPublic(context)->next_handle.fetch_add(1));
}

// Whether each object is still the one that was created. For the verbs that are system calls in rdma-core: there the
// kernel looks up each handle, and fails with ENOENT if the context does not have it. Null pointers are valid. Verbs of
// the fast path do not check.
template <typename... Objects>
bool Known(const Objects*... objects) {
  const auto known = [](const auto* object) {
    return object == nullptr || (object->handle == object->identity.handle && object->context == object->identity.context);
  };
  return (known(objects) && ...);
}

// These fill the entries of the operation tables for supported operations.
void FillDeviceOperations(verbs_context* vctx);      // query.cc
void FillCompletionOperations(verbs_context* vctx);  // completion.cc
void FillQueuePairOperations(verbs_context* vctx);   // queue_pair.cc
void FillSharedReceiveOperations(verbs_context* vctx);  // srq.cc
void FillXrcOperations(verbs_context* vctx);  // xrc.cc
void FillParentDomainOperations(verbs_context* vctx);  // parent_domain.cc
void FillDeviceMemoryOperations(verbs_context* vctx);  // device_memory.cc
void FillMemoryOperations(verbs_context* vctx);      // memory.cc
void FillMemoryWindowOperations(verbs_context* vctx);  // memory_window.cc
// Fills every entry of both tables with a function that fails with EOPNOTSUPP, as the man pages say. unsupported.cc
void FillUnsupportedOperations(verbs_context* vctx);

// completion_ex.cc
void FillPollOperations(Cq* cq, uint64_t wc_flags);
// send_batch.cc. EOPNOTSUPP: the RNIC does not support one of the operations.
int FillSendOperations(Qp* qp, ibv_qp_type type, uint64_t send_ops_flags, Persona persona);

// The errno with which a fault makes the verb fail; 0: none. Without faults this costs one predictable branch.
inline int Fault(faults::Call call, const ibv_context* context) {
  return faults::Enabled() ? faults::FailureOf(call, context->device->name) : 0;
}
inline int Fault(faults::Call call, const ibv_qp* qp, std::optional<int> opcode = std::nullopt) {
  return faults::Enabled() ? faults::FailureOf(call, qp->context->device->name, qp->qp_num, opcode) : 0;
}

// The result of a verb that returns an errno value: 0, or `error`, which is also stored in errno (ibv_post_send(3): "0
// on success, or the value of errno on failure"). Every such verb returns through this function. Results that only say
// that a queue is empty (ibv_start_poll) do not.
inline int Report(int error) {
  if (error != 0) [[unlikely]] errno = error;
  return error;
}

// The same for an entry of an operation table: Reported<ModifyCq> calls ModifyCq and reports its result.
template <auto kVerb>
struct ReportedVerb;
template <typename... Arguments, int (*kVerb)(Arguments...)>
struct ReportedVerb<kVerb> {
  static int Call(Arguments... arguments) { return Report(kVerb(arguments...)); }
};
template <auto kVerb>
inline constexpr auto Reported = &ReportedVerb<kVerb>::Call;

// Sets errno to `error`, and returns a null pointer.
template <typename T>
T* Fail(int error) {
  errno = error;
  return nullptr;
}

}  // namespace weft::verbs

#endif  // VERBS_OBJECTS_H_
