#ifndef MPI_HYBRID_HOST_WEAK_TABLE_H_
#define MPI_HYBRID_HOST_WEAK_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>

namespace weft::mpi::host {

// Objects that all their users share, by a key, for as long as one of these has them. What is gone is removed whenever
// the table has doubled: an entry costs the same however many there are.
template <typename Key, typename Object>
class WeakTable {
 public:
  // Null: there is none, or it is gone.
  std::shared_ptr<Object> Find(const Key& key) const {
    const auto found = objects_.find(key);
    return found == objects_.end() ? nullptr : found->second.lock();
  }
  void Put(const Key& key, const std::shared_ptr<Object>& object) {
    if (objects_.size() >= sweep_at_) {
      std::erase_if(objects_, [](const auto& one) { return one.second.expired(); });
      sweep_at_ = std::max(kFirstSweep, 2 * objects_.size());
    }
    objects_[key] = object;
  }
  size_t entries() const { return objects_.size(); }

 private:
  static constexpr size_t kFirstSweep = 16;

  std::map<Key, std::weak_ptr<Object>> objects_;
  size_t sweep_at_ = kFirstSweep;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_WEAK_TABLE_H_
