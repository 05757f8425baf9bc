#include "mpi_hybrid/p2p/host/ring.h"

namespace weft::mpi::host {

bool RingWriter::Look() {
  const uint32_t read = page_.read.load(std::memory_order_acquire);
  if (read - read_ > under_way()) return false;
  read_ = read;
  return true;
}

bool RingWriter::HasItsWords() const {
  uint32_t at = at_;
  for (uint32_t number = written_; number != read_; --number) {
    at = (at == 0 ? RingPage::kSlots : at) - 1;
    if (static_cast<uint32_t>(page_.slots[at].control.load(std::memory_order_relaxed)) != number) return false;
  }
  return true;
}

RingReader::Result RingReader::Look(RingItem* item) const {
  const RingSlot& slot = page_.slots[at_];
  const uint64_t control = slot.control.load(std::memory_order_acquire);
  if (const uint32_t number = NumberOf(control); number != read_ + 1) {
    const bool is_free = number == read_ + 1 - RingPage::kSlots || number == 0;  // of the round before, or never written
    return is_free ? Result::kNothing : Result::kNonsense;
  }
  const auto first_bytes = static_cast<uint8_t>(control >> 32);
  const auto kind = static_cast<uint8_t>(control >> 40);
  if (control >> 48 != 0 || kind > static_cast<uint8_t>(BulkKind::kOffer)) return Result::kNonsense;
  item->bulk = static_cast<BulkKind>(kind);
  const bool refers = Refers(item->bulk);
  if (first_bytes > (refers ? RingSlot::kInlineBesideBulk : RingSlot::kInline)) return Result::kNonsense;
  item->first = {slot.bytes, first_bytes};
  if (!refers) return Result::kItem;
  std::memcpy(&item->where, slot.bytes + RingSlot::kWhereAt, sizeof(item->where));
  std::memcpy(&item->length, slot.bytes + RingSlot::kLengthAt, sizeof(item->length));
  const bool in_cell = item->bulk == BulkKind::kCell;
  if (in_cell && item->where >= cells_) return Result::kNonsense;
  if (item->length == 0 || item->length > (in_cell ? cell_bytes_ : kMostFromMemory)) return Result::kNonsense;
  return Result::kItem;
}

bool RingReader::Publish() {
  published_ = read_;
  // Sequentially consistent: whether the writer waits is looked at after it, by such a load. Pairs with RingWriter::WaitFor.
  page_.read.store(read_, std::memory_order_seq_cst);
  const uint64_t waits = page_.waits_for.load(std::memory_order_seq_cst);
  return (waits & RingPage::kWaits) != 0 && static_cast<int32_t>(read_ - static_cast<uint32_t>(waits)) >= 0;
}

}  // namespace weft::mpi::host
