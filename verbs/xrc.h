#ifndef VERBS_XRC_H_
#define VERBS_XRC_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sim/queues/xrc_domain.h"
#include "verbs/objects.h"

namespace weft::verbs {

// The ibv_qp objects of one receiving queue pair (ibv_open_qp(3)): each gets its events. Thread safe.
class SharedOwners : public sim::AsyncSink {
 public:
  void Add(ibv_qp* qp);
  // Returns whether it was the last. Afterwards no event is delivered to it.
  bool Remove(ibv_qp* qp);
  void OnAsyncEvent(ibv_event_type type, void*) override;

 private:
  std::mutex mutex_;  // guards owners_
  std::vector<ibv_qp*> owners_;
};

// State shared by all ibv_xrcd of one domain. Thread safe.
class XrcShared {
 public:
  struct Receiver {
    std::shared_ptr<sim::AnyQueuePair> engine;
    std::shared_ptr<SharedOwners> owners;
  };

  explicit XrcShared(std::shared_ptr<sim::XrcDomain> its_domain) : domain(std::move(its_domain)) {}

  void Add(const Receiver& receiver);
  // Adds `qp` to the owners of the queue pair with that number. Returns false if this domain has none with that number.
  bool Open(uint32_t number, ibv_qp* qp, Receiver* out);
  // Returns whether it was the last object of the queue pair, which must then be destroyed.
  bool Close(uint32_t number, ibv_qp* qp);

  const std::shared_ptr<sim::XrcDomain> domain;

 private:
  std::mutex mutex_;  // guards receivers_
  std::unordered_map<uint32_t, Receiver> receivers_;
};

// ibv_open_xrcd.
struct Xrcd : ibv_xrcd {
  std::shared_ptr<XrcShared> shared;
  // Queue pairs and shared receive queues made with it; ibv_close_xrcd returns EBUSY if there are any.
  std::atomic<int> users{0};
};

inline Xrcd* FromPublic(ibv_xrcd* xrcd) { return static_cast<Xrcd*>(xrcd); }

}  // namespace weft::verbs

#endif  // VERBS_XRC_H_
