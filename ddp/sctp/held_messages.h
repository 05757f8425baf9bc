#ifndef DDP_SCTP_HELD_MESSAGES_H_
#define DDP_SCTP_HELD_MESSAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer_pool.h"
#include "base/byte_reader.h"
#include "ddp/sctp/held_budget.h"

namespace weft::ddp::sctp {

// Copies of messages that came and cannot be handed on yet, of all sessions of an association together, in at most so
// many bytes. They lie in cells of blocks of the pool; a block without a message goes back to it.
class HeldMessages {
 public:
  static constexpr size_t kCellSize = 256;  // bytes; each message has at least one

  // One message. Belongs to who kept it, and is to be dropped once.
  struct Message {
    uint32_t first_cell = 0;
    uint32_t length = 0;  // bytes
    size_t cells() const { return CellsFor(length); }
  };

  // `most_bytes` is rounded up to whole blocks of the pool, which outlives this. `budget`, too: what others have besides; nullptr: there are none.
  HeldMessages(BufferPool& pool, size_t most_bytes, HeldBudget* budget = nullptr);
  ~HeldMessages();
  HeldMessages(const HeldMessages&) = delete;

  static constexpr size_t CellsFor(size_t length) { return length == 0 ? 1 : (length + kCellSize - 1) / kCellSize; }
  bool Fits(size_t length) const {
    const size_t cells = CellsFor(length);
    if (cells > free_cells_) return false;
    // A message is shorter than a block: it needs one more at most.
    return budget_ == nullptr || cells <= blocks_in_use_ * kCellsInBlock - cells_in_use() || budget_->Allows(blocks_in_use_);
  }
  Message Keep(ByteSpan bytes);  // only if it fits
  void Drop(const Message& message);

  // The bytes of a message from front to back, a cell at a time. The first stretch has all of them, or kCellSize.
  class Reader {
   public:
    Reader(const HeldMessages& held, const Message& message)
        : held_(held), cell_(message.first_cell), left_(message.length) {}
    ByteSpan Next();  // empty: that was all

   private:
    const HeldMessages& held_;
    uint32_t cell_;
    size_t left_;
  };

  size_t free_cells() const { return free_cells_; }
  size_t cells_in_use() const { return blocks_.size() * kCellsInBlock - free_cells_; }
  size_t blocks_in_use() const { return blocks_in_use_; }

 private:
  static constexpr uint32_t kCellsInBlock = BufferPool::kBlockSize / kCellSize;
  static constexpr uint32_t kNoCell = ~uint32_t{0};

  struct Block {
    BufferPool::Lease memory;
    uint32_t used = 0;        // cells
    uint32_t untouched = 0;   // cells from here on were never given since the memory was taken
    uint32_t free = kNoCell;  // the first of those that came back; next_ has the others
  };

  uint32_t TakeCell();
  void GiveBack(uint32_t cell);
  MutableByteSpan CellBytes(uint32_t cell) const;

  BufferPool& pool_;
  HeldBudget* const budget_;
  std::vector<Block> blocks_;
  size_t blocks_in_use_ = 0;  // that have memory
  std::vector<uint32_t>
      next_;  // the cell after each in its message, or among the free ones of its block. Made with the first message
  size_t free_cells_;
  size_t with_room_ = 0;  // a block before which none has a free cell
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_HELD_MESSAGES_H_
