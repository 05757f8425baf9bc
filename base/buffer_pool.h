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

// Staging memory of one size, lent to whoever has a frame in flight, so that an idle connection holds none. Thread safe: each thread keeps
// the two blocks (one to send from, one to receive into) that it gave back last, and asks nobody for them. The pool outlives its leases.
class BufferPool {
 public:
  // Fits two whole FPDUs of 64 KiB with markers, with room to read ahead.
  static constexpr size_t kBlockSize = 160 * 1024;

  // One block, given back to the pool when destroyed or Reset().
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

  // `keep`: blocks that stay allocated while nobody has them, besides those of threads.
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
  // Of the calling thread; null, false: none, no room.
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
