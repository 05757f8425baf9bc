#ifndef MPI_HYBRID_P2P_ENGINE_ID_TABLE_H_
#define MPI_HYBRID_P2P_ENGINE_ID_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::mpi {

// Operations by their number on the wire (never 0). A number is not reused before 2^24 others, unless the table is full
// of older ones.
template <typename Operation>
class IdTable {
 public:
  uint32_t Add(Operation* operation) {
    uint32_t slot;
    if (free_.empty()) {
      slot = static_cast<uint32_t>(entries_.size());
      entries_.push_back({operation, 1});
    } else {
      slot = free_.back();
      free_.pop_back();
      entries_[slot].operation = operation;
    }
    return IdOf(slot);
  }
  Operation* Find(uint32_t id) const {
    const uint32_t slot = id & kSlotMask;
    return slot < entries_.size() && IdOf(slot) == id ? entries_[slot].operation : nullptr;
  }
  void Remove(uint32_t id) {
    const uint32_t slot = id & kSlotMask;
    entries_[slot].operation = nullptr;
    entries_[slot].generation = entries_[slot].generation % kMostGeneration + 1;
    free_.push_back(slot);
  }
  // Calls visit(Operation&) for each operation; `visit` may remove that operation.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (size_t slot = 0; slot < entries_.size(); ++slot) {
      if (entries_[slot].operation != nullptr) visit(*entries_[slot].operation);
    }
  }
  bool empty() const { return free_.size() == entries_.size(); }

 private:
  static constexpr uint32_t kSlotMask = 0xffffff, kMostGeneration = 255;
  struct Entry {
    Operation* operation;
    uint32_t generation;  // 1 to 255
  };
  uint32_t IdOf(uint32_t slot) const { return entries_[slot].generation << 24 | slot; }

  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_ID_TABLE_H_
