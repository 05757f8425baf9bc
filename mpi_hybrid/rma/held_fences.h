#ifndef MPI_HYBRID_RMA_HELD_FENCES_H_
#define MPI_HYBRID_RMA_HELD_FENCES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weft::mpi::rma {

// Fences of origins whose data the target's RNIC has not placed completely yet: the last one per connection and window.
// They do not count yet, because the target's program may change the data after its own fence. Guarded by the service's
// mutex.
class HeldFences {
 public:
  struct Fence {
    uint32_t connection = 0, window = 0;
    int rank = 0;
    uint32_t number = 0;
  };

  bool empty() const { return fences_.empty(); }

  void Hold(const Fence& fence) {
    const auto held = std::find_if(fences_.begin(), fences_.end(), [&](const Fence& one) {
      return one.connection == fence.connection && one.window == fence.window;
    });
    if (held == fences_.end()) {
      fences_.push_back(fence);
    } else {
      held->number = fence.number;
    }
  }

  // Calls `count(fence)` for the fences for which `must_wait(fence)` is false, and removes them. The callbacks must not
  // call back.
  template <typename MustWait, typename Count>
  void CountOthers(const MustWait& must_wait, const Count& count) {
    std::erase_if(fences_, [&](const Fence& held) {
      if (must_wait(held)) return false;
      count(held);
      return true;
    });
  }

 private:
  std::vector<Fence> fences_;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_HELD_FENCES_H_
