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

// Copies of messages that have arrived but cannot be handed on yet, for all sessions of an association together. Their
// total size is limited. They are stored in cells of blocks from the pool; a block without a message returns to the
// pool.
class HeldMessages {
 public:
  static constexpr size_t kCellSize = 256;  // bytes; each message takes at least one cell

  // One message. The caller of Keep() owns it and must drop it once.
  struct Message {
    uint32_t first_cell = 0;
    uint32_t length = 0;  // bytes
    size_t cells() const { return CellsFor(length); }
  };

  // `most_bytes` is rounded up to whole blocks of the pool. `pool` and `budget` outlive this object. `budget`: the
  // limit shared with other associations; nullptr: none.
  HeldMessages(BufferPool& pool, size_t most_bytes, HeldBudget* budget = nullptr);
  ~HeldMessages();
  HeldMessages(const HeldMessages&) = delete;

  static constexpr size_t CellsFor(size_t length) { return length == 0 ? 1 : (length + kCellSize - 1) / kCellSize; }
  bool Fits(size_t length) const {
    const size_t cells = CellsFor(length);
    if (cells > free_cells_) return false;
    // A message is shorter than a block, so it needs at most one new block.
    return budget_ == nullptr || cells <= blocks_in_use_ * kCellsInBlock - cells_in_use() || budget_->Allows(blocks_in_use_);
  }
  Message Keep(ByteSpan bytes);  // only if it fits
  void Drop(const Message& message);

  // Reads a message from front to back, one cell at a time. The first piece has the whole message, or kCellSize bytes.
  class Reader {
   public:
    Reader(const HeldMessages& held, const Message& message)
        : held_(held), cell_(message.first_cell), left_(message.length) {}
    ByteSpan Next();  // empty: the message is complete

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
    uint32_t untouched = 0;   // cells from here on were not used since the memory was allocated
    uint32_t free = kNoCell;  // the first released cell; next_ chains the others
  };

  uint32_t TakeCell();
  // A chain of cells of one block.
  void GiveBack(uint32_t first, uint32_t last, uint32_t count);
  MutableByteSpan CellBytes(uint32_t cell) const;

  BufferPool& pool_;
  HeldBudget* const budget_;
  std::vector<Block> blocks_;
  size_t blocks_in_use_ = 0;  // blocks that have memory
  std::vector<uint32_t>
      next_;  // the next cell of the same message, or of the free list of its block. Allocated with the first message
  size_t free_cells_;
  size_t with_room_ = 0;  // no block before this one has a free cell
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_HELD_MESSAGES_H_
