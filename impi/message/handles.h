#ifndef IMPI_MESSAGE_HANDLES_H_
#define IMPI_MESSAGE_HANDLES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace weft::impi {

// Objects that a peer names by a number that this process gave it (pk_srqid, pk_drqid). The number is looked up and never trusted: an object that is gone,
// or that never was, is not found.
//
//   | how often the place was used before : 32 | place + 1 : 32 |      never 0
//
// A number comes again after its place was used 2^32 times. Objects stay where they are.
template <typename T>
class Handles {
 public:
  uint64_t Add(T value) {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const uint32_t at = free_.back();
    free_.pop_back();
    slots_[at].value.emplace(std::move(value));
    return HandleOf(at);
  }
  // Null: there is none.
  T* Find(uint64_t handle) {
    const auto at = static_cast<uint32_t>(handle) - 1;  // 0 becomes the highest number
    if (at >= slots_.size() || HandleOf(at) != handle || !slots_[at].value) return nullptr;
    return &*slots_[at].value;
  }
  // One that exists.
  T& Get(uint64_t handle) {
    T* found = Find(handle);
    WEFT_CHECK(found != nullptr);
    return *found;
  }
  void Remove(uint64_t handle) {
    WEFT_CHECK(Find(handle) != nullptr);
    const auto at = static_cast<uint32_t>(handle) - 1;
    slots_[at].value.reset();
    ++slots_[at].uses;
    free_.push_back(at);
  }
  size_t size() const { return slots_.size() - free_.size(); }
  // Calls visit(handle, T&) for each. `visit` adds and removes none.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (uint32_t at = 0; at < slots_.size(); ++at) {
      if (slots_[at].value) visit(HandleOf(at), *slots_[at].value);
    }
  }

 private:
  struct Slot {
    std::optional<T> value;
    uint32_t uses = 0;
  };
  uint64_t HandleOf(uint32_t at) const { return uint64_t{slots_[at].uses} << 32 | (uint64_t{at} + 1); }

  std::deque<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace weft::impi

#endif  // IMPI_MESSAGE_HANDLES_H_
