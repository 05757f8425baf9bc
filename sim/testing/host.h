#ifndef SIM_TESTING_HOST_H_
#define SIM_TESTING_HOST_H_

#include <infiniband/verbs.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "sim/rnic.h"

// The surroundings of an RNIC for tests: a program's objects, without the C ABI.
namespace weft::sim::testing {

// Takes the place of libibverbs' struct ibv_qp.
struct TestQp {
  std::shared_ptr<QueuePair> qp;

  ibv_qp* handle() { return reinterpret_cast<ibv_qp*>(this); }
  static std::shared_ptr<QueuePair> Resolve(ibv_qp* handle) { return reinterpret_cast<TestQp*>(handle)->qp; }
};

struct RecordedAsync final : AsyncSink {
  void OnAsyncEvent(ibv_event_type type, void*) override {
    std::lock_guard lock(mutex);
    events.push_back(type);
  }
  std::mutex mutex;
  std::vector<ibv_event_type> events;
};

// Records connection events until the test asks for them.
struct RecordedCm final : CmObserver {
  void OnCmEvent(CmEvent event) override {
    std::lock_guard lock(mutex);
    events.push_back(std::move(event));
    changed.notify_all();
  }
  // For real networks. A test that waits longer than this fails.
  CmEvent Wait() {
    std::unique_lock lock(mutex);
    CmEvent event{.error = -1};
    if (!changed.wait_for(lock, std::chrono::seconds(20), [&] { return !events.empty(); })) return event;
    event = std::move(events.front());
    events.pop_front();
    return event;
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<CmEvent> events;
};

struct QpSize {
  uint32_t sends = 16, receives = 16, pieces = 4, inline_bytes = 64;
  int completions = 64;
  bool signal_all = true;
};

// One program on an RNIC: a protection domain (its own or another's), one completion queue, one queue pair.
struct Program {
  explicit Program(Rnic& its_rnic, QpSize size = {}, std::shared_ptr<Pd> shared = nullptr)
      : rnic(its_rnic),
        pd(shared != nullptr ? std::move(shared) : rnic.AllocatePd()),
        async(std::make_shared<RecordedAsync>()),
        channel(std::make_shared<CompletionChannel>()),
        cq(std::make_shared<CompletionQueue>(size.completions, channel, async, this)),
        cm(std::make_shared<RecordedCm>()) {
    Rnic::SetQueuePairResolver(&TestQp::Resolve);
    QueuePairOptions options{.pd = pd, .send_cq = cq, .receive_cq = cq, .signal_all = size.signal_all, .async = async};
    options.capabilities = {size.sends, size.receives, size.pieces, size.pieces, size.inline_bytes};
    qp.qp = rnic.CreateQueuePair(std::move(options)).value();
    ibv_qp_attr init{};
    init.qp_state = IBV_QPS_INIT;
    init.port_num = 1;
    init.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    qp.qp->Modify(init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }
  ~Program() {
    if (endpoint) {
      endpoint->SetObserver(nullptr);
      endpoint->Close();
    }
    if (listener) listener->Close();
    qp.qp->Destroy();
  }

  RegionInfo Register(void* memory, size_t length,
                      int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ) {
    const auto address = reinterpret_cast<uint64_t>(memory);
    return rnic.memory().Register(*pd, address, length, address, access).value();
  }

  Rnic& rnic;
  std::shared_ptr<Pd> pd;
  std::shared_ptr<RecordedAsync> async;
  std::shared_ptr<CompletionChannel> channel;
  std::shared_ptr<CompletionQueue> cq;
  std::shared_ptr<RecordedCm> cm;
  TestQp qp;
  std::shared_ptr<Endpoint> endpoint;
  std::shared_ptr<CmListener> listener;
};

}  // namespace weft::sim::testing

#endif  // SIM_TESTING_HOST_H_
