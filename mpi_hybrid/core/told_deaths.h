#ifndef MPI_HYBRID_CORE_TOLD_DEATHS_H_
#define MPI_HYBRID_CORE_TOLD_DEATHS_H_

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "mpi_hybrid/core/process_table.h"

namespace weft::mpi {

// Deaths of processes, of this job and of others, that the launcher has reported and that Take has not returned yet.
// Any thread may call it, without the library's lock.
class ToldDeaths {
 public:
  struct Death {
    std::optional<JobId> job;
    int rank;
    bool operator==(const Death&) const = default;
  };

  // `job`: nullopt means this process's own job.
  void Add(const std::optional<JobId>& job, int rank) {
    const std::lock_guard lock(mutex_);
    deaths_.push_back({job, rank});
    any_ = true;
    if (wake_ != nullptr) wake_();
  }
  // Calls `wake` whenever a death is added, and at once if there is one already. Null: stop calling.
  void Listen(void (*wake)()) {
    const std::lock_guard lock(mutex_);
    wake_ = wake;
    if (wake_ != nullptr && any_) wake_();
  }
  bool any() const { return any_.load(std::memory_order_relaxed); }
  std::vector<Death> Take() {
    const std::lock_guard lock(mutex_);
    any_ = false;
    return std::exchange(deaths_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Death> deaths_;
  void (*wake_)() = nullptr;
  std::atomic<bool> any_{false};
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_TOLD_DEATHS_H_
