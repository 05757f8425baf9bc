#ifndef MPI_HYBRID_CORE_HANDLE_H_
#define MPI_HYBRID_CORE_HANDLE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"

namespace weft::mpi {

// MPICH's handles are 32-bit numbers:
//   | how : 2 | kind : 4 | detail or index : 26 |
// how: 0 null, 1 built in, 2 made at run time. (MPICH also has 3, which is not used here.)
enum class HandleKind : uint32_t {
  kComm = 1,
  kGroup = 2,
  kDatatype = 3,
  kErrhandler = 5,
  kOp = 6,
  kInfo = 7,
  kWin = 8,
  kKeyval = 9,
  kRequest = 11,  // also messages of matched probes
  kSession = 14,
};

constexpr bool IsKind(int handle, HandleKind kind) {
  return ((static_cast<uint32_t>(handle) >> 26) & 15) == static_cast<uint32_t>(kind);
}
constexpr bool IsBuiltin(int handle) { return static_cast<uint32_t>(handle) >> 30 == 1; }
constexpr bool IsMade(int handle) { return static_cast<uint32_t>(handle) >> 30 == 2; }
constexpr uint32_t HandleIndex(int handle) { return static_cast<uint32_t>(handle) & 0x3ffffff; }

// Finds objects made at run time by their handle. Does not own them. Guarded by the library's lock (core/lock.h).
template <typename T>
class HandleTable {
 public:
  explicit constexpr HandleTable(HandleKind kind) : kind_(kind) {}

  // Indices below `first_index` are never used. They belong to predefined handles of the "made" form, such as
  // MPI_FLOAT_INT.
  constexpr HandleTable(HandleKind kind, uint32_t first_index) : kind_(kind), first_(first_index) {}

  int Add(T* object) {
    uint32_t slot;
    if (free_.empty()) {
      slot = static_cast<uint32_t>(objects_.size());
      objects_.push_back(object);
    } else {
      slot = free_.back();
      free_.pop_back();
      objects_[slot] = object;
    }
    return static_cast<int>(2u << 30 | static_cast<uint32_t>(kind_) << 26 | (slot + first_));
  }
  // Null: not of this kind, never assigned, or removed.
  T* Find(int handle) const {
    if (!IsMade(handle) || !IsKind(handle, kind_)) return nullptr;
    const uint32_t slot = HandleIndex(handle) - first_;
    return slot < objects_.size() ? objects_[slot] : nullptr;
  }
  void Remove(int handle) {
    WEFT_CHECK(Find(handle) != nullptr);
    RemoveFound(handle);
  }
  // Like Remove, for a handle that Find has just found.
  void RemoveFound(int handle) {
    const uint32_t slot = HandleIndex(handle) - first_;
    objects_[slot] = nullptr;
    free_.push_back(slot);
  }
  // Calls `visit(T&)` for each object. `visit` must not add or remove objects.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (T* object : objects_) {
      if (object != nullptr) visit(*object);
    }
  }

 private:
  const HandleKind kind_;
  const uint32_t first_ = 0;
  std::vector<T*> objects_;
  std::vector<uint32_t> free_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_HANDLE_H_
