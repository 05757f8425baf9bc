#ifndef BENCH_VERBS_RESOURCES_H_
#define BENCH_VERBS_RESOURCES_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>

namespace weft::bench {

// Calls the C function that destroys an object.
template <auto kDestroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const {
    kDestroy(object);
  }
};

template <typename T, auto kDestroy>
using Owned = std::unique_ptr<T, Destroyer<kDestroy>>;

using OwnedPd = Owned<ibv_pd, ibv_dealloc_pd>;
using OwnedMr = Owned<ibv_mr, ibv_dereg_mr>;
using OwnedCq = Owned<ibv_cq, ibv_destroy_cq>;
using OwnedChannel = Owned<ibv_comp_channel, ibv_destroy_comp_channel>;
using OwnedEventChannel = Owned<rdma_event_channel, rdma_destroy_event_channel>;

struct DestroyId {
  void operator()(rdma_cm_id* id) const {
    if (id->qp != nullptr) rdma_destroy_qp(id);
    rdma_destroy_id(id);
  }
};
using OwnedId = std::unique_ptr<rdma_cm_id, DestroyId>;

}  // namespace weft::bench

#endif  // BENCH_VERBS_RESOURCES_H_
