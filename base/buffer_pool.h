#ifndef BASE_BUFFER_POOL_H_
#define BASE_BUFFER_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/byte_reader.h"
#include "base/spin_lock.h"

namespace weft {

// Staging blocks of one size. A connection borrows one only while it has a frame in flight, so an idle connection holds
// none. Thread safe. Each thread keeps the two blocks that it returned last (one to send from, one to receive into),
// and gets them back without taking the lock. The pool outlives its leases.
class BufferPool {
 public:
  // Fits two whole 64 KiB FPDUs with markers, and room to read ahead.
  static constexpr size_t kBlockSize = 160 * 1024;

  // One block. It returns to the pool on destruction or Reset().
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept : pool_(other.pool_), block_(std::move(other.block_)) {}
    Lease& operator=(Lease&& other) noexcept {
      Reset();
      pool_ = other.pool_;
      block_ = std::move(other.block_);
      return *this;
    }
    ~Lease() { Reset(); }

    explicit operator bool() const { return block_ != nullptr; }
    uint8_t* data() const { return block_.get(); }
    MutableByteSpan bytes() const { return {block_.get(), kBlockSize}; }
    void Reset() {
      if (block_) pool_->GiveBack(std::move(block_));
    }

   private:
    friend class BufferPool;
    Lease(BufferPool* pool, std::unique_ptr<uint8_t[]> block) : pool_(pool), block_(std::move(block)) {}

    BufferPool* pool_ = nullptr;
    std::unique_ptr<uint8_t[]> block_;
  };

  // `keep`: number of free blocks that stay allocated, in addition to those that threads keep.
  explicit BufferPool(size_t keep = 16) : keep_(keep) { free_.reserve(keep); }

  Lease Take() {
    if (uint8_t* const block = TakeOwn()) return Lease(this, std::unique_ptr<uint8_t[]>(block));
    {
      std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        Lease lease(this, std::move(free_.back()));
        free_.pop_back();
        return lease;
      }
    }
    return Lease(this, std::unique_ptr<uint8_t[]>(new uint8_t[kBlockSize]));  // not zeroed: it will be written first
  }

 private:
  // The calling thread's own blocks. TakeOwn() returns nullptr if it has none; KeepOwn() returns false if it has no
  // room.
  static uint8_t* TakeOwn();
  static bool KeepOwn(uint8_t* block);

  void GiveBack(std::unique_ptr<uint8_t[]> block) {
    if (KeepOwn(block.get())) {
      block.release();
      return;
    }
    std::lock_guard lock(mutex_);
    if (free_.size() < keep_) free_.push_back(std::move(block));
  }

  const size_t keep_;
  SpinLock mutex_;                               // guards free_
  std::vector<std::unique_ptr<uint8_t[]>> free_;
};

}  // namespace weft

#endif  // BASE_BUFFER_POOL_H_
