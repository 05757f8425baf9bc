#ifndef RDMAP_FIXED_RING_H_
#define RDMAP_FIXED_RING_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/check.h"

namespace weft::rdmap {

// A FIFO of at most `capacity` entries. Allocates only once. Entry 0 is the oldest.
template <typename T>
class FixedRing {
 public:
  explicit FixedRing(uint32_t capacity)
      : capacity_(capacity), entries_(capacity == 0 ? nullptr : std::make_unique<T[]>(capacity)) {}

  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == capacity_; }

  T& operator[](uint32_t index) {
    WEFT_CHECK(index < size_);
    uint64_t at = uint64_t{first_} + index;
    if (at >= capacity_) at -= capacity_;
    return entries_[at];
  }
  T& front() { return (*this)[0]; }

  void Push(const T& entry) {
    WEFT_CHECK(!full());
    ++size_;
    (*this)[size_ - 1] = entry;
  }
  void PopBack() {
    WEFT_CHECK(!empty());
    --size_;
  }
  T& back() { return (*this)[size_ - 1]; }
  void Pop() {
    WEFT_CHECK(!empty());
    if (++first_ == capacity_) first_ = 0;
    --size_;
  }

 private:
  uint32_t capacity_;
  uint32_t first_ = 0;
  uint32_t size_ = 0;
  std::unique_ptr<T[]> entries_;
};

}  // namespace weft::rdmap

#endif  // RDMAP_FIXED_RING_H_
