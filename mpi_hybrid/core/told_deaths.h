#ifndef MPI_HYBRID_CORE_TOLD_DEATHS_H_
#define MPI_HYBRID_CORE_TOLD_DEATHS_H_

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace weft::mpi {

// Ranks of this job of which the launcher says that they are dead, until somebody takes them. From any thread, without the library's lock.
class ToldDeaths {
 public:
  void Add(int rank) {
    const std::lock_guard lock(mutex_);
    ranks_.push_back(rank);
    any_ = true;
    if (wake_ != nullptr) wake_();
  }
  // Calls `wake` whenever there is something to take, now already where there is; null: no more.
  void Listen(void (*wake)()) {
    const std::lock_guard lock(mutex_);
    wake_ = wake;
    if (wake_ != nullptr && any_) wake_();
  }
  bool any() const { return any_.load(std::memory_order_relaxed); }
  std::vector<int> Take() {
    const std::lock_guard lock(mutex_);
    any_ = false;
    return std::exchange(ranks_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<int> ranks_;
  void (*wake_)() = nullptr;
  std::atomic<bool> any_{false};
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_TOLD_DEATHS_H_
