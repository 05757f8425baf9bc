#include "ddp/sctp/held_messages.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace weft::ddp::sctp {

HeldMessages::HeldMessages(BufferPool& pool, size_t most_bytes, HeldBudget* budget)
    : pool_(pool),
      budget_(budget),
      blocks_(std::max<size_t>(1, (most_bytes + BufferPool::kBlockSize - 1) / BufferPool::kBlockSize)),
      free_cells_(blocks_.size() * kCellsInBlock) {}

HeldMessages::~HeldMessages() {
  if (budget_ != nullptr) budget_->GiveBack(blocks_in_use_);
}

MutableByteSpan HeldMessages::CellBytes(uint32_t cell) const {
  return {blocks_[cell / kCellsInBlock].memory.data() + cell % kCellsInBlock * kCellSize, kCellSize};
}

uint32_t HeldMessages::TakeCell() {
  while (blocks_[with_room_].used == kCellsInBlock) ++with_room_;
  Block& block = blocks_[with_room_];
  if (!block.memory) {
    block.memory = pool_.Take();
    ++blocks_in_use_;
    if (budget_ != nullptr) budget_->Take();
    block.untouched = 0;
    block.free = kNoCell;
  }
  ++block.used;
  --free_cells_;
  if (block.free == kNoCell) return static_cast<uint32_t>(with_room_) * kCellsInBlock + block.untouched++;
  const uint32_t cell = block.free;
  block.free = next_[cell];
  return cell;
}

void HeldMessages::GiveBack(uint32_t first, uint32_t last, uint32_t count) {
  const uint32_t index = first / kCellsInBlock;
  Block& block = blocks_[index];
  next_[last] = block.free;
  block.free = first;
  free_cells_ += count;
  with_room_ = std::min<size_t>(with_room_, index);
  block.used -= count;
  if (block.used != 0) return;
  block.memory.Reset();
  --blocks_in_use_;
  if (budget_ != nullptr) budget_->GiveBack(1);
}

HeldMessages::Message HeldMessages::Keep(ByteSpan bytes) {
  WEFT_CHECK(Fits(bytes.size()));
  if (next_.empty()) next_.resize(blocks_.size() * kCellsInBlock, kNoCell);
  Message message{.length = static_cast<uint32_t>(bytes.size())};
  uint32_t last = kNoCell;
  do {
    const uint32_t cell = TakeCell();
    next_[cell] = kNoCell;
    (last == kNoCell ? message.first_cell : next_[last]) = cell;
    last = cell;
    const size_t count = std::min(bytes.size(), kCellSize);
    if (count != 0) std::memcpy(CellBytes(cell).data(), bytes.data(), count);
    bytes = bytes.subspan(count);
  } while (!bytes.empty());
  return message;
}

// In their order, so that the next message lies as well together as this one.
void HeldMessages::Drop(const Message& message) {
  uint32_t first = message.first_cell;
  for (size_t left = message.cells(); left != 0;) {
    uint32_t last = first, count = 1;
    for (; count != left && next_[last] / kCellsInBlock == first / kCellsInBlock; ++count) last = next_[last];
    const uint32_t behind = next_[last];
    GiveBack(first, last, count);
    first = behind;
    left -= count;
  }
}

ByteSpan HeldMessages::Reader::Next() {
  const size_t count = std::min(left_, kCellSize);
  if (count == 0) return {};
  const ByteSpan bytes = held_.CellBytes(cell_).first(count);
  left_ -= count;
  if (left_ != 0) cell_ = held_.next_[cell_];
  return bytes;
}

}  // namespace weft::ddp::sctp
