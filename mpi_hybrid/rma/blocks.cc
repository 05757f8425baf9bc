#include "mpi_hybrid/rma/blocks.h"

#include <algorithm>

namespace weft::mpi::rma {

BlockSource::BlockSource(uint64_t offset, MPI_Aint count, const Datatype& type, const ElementType& element, MPI_Aint bytes)
    : cursor_(reinterpret_cast<const void*>(offset), count, type),
      element_(element),
      bytes_(bytes),
      room_(DataRoom(type.dense || type.pieces * count == 1 ? 1 : kMaxBlocks)) {
  room_ -= room_ % element.size;
}

// False: it takes a block more than there may be.
bool BlockSource::Append(uint64_t offset, size_t bytes) {
  if (count_ > 0) {
    Block& last = blocks_[count_ - 1];
    if (last.bytes == bytes) {
      const auto distance = static_cast<int64_t>(offset - last.offset);
      if (last.count == 1) last.stride = distance;
      if (distance == last.stride * static_cast<int64_t>(last.count)) {
        ++last.count;
        return true;
      }
    }
  }
  if (count_ == kMaxBlocks) return false;
  blocks_[count_++] = {offset, static_cast<uint32_t>(bytes), 1, 0};
  return true;
}

BlockSource::Part BlockSource::Next() {
  count_ = 0;
  size_t bytes = 0;
  while (!done() && bytes < room_) {
    const MPI_Aint before = cursor_.position();
    const size_t limit = std::min(room_ - bytes, static_cast<size_t>(bytes_ - before));
    if (element_.first == 0 && count_ < kMaxBlocks) {
      if (const TypeCursor::Blocks run = cursor_.NextBlocks(limit); run.count != 0) {
        blocks_[count_++] = {run.first, static_cast<uint32_t>(run.length), static_cast<uint32_t>(run.count), run.stride};
        bytes += run.count * run.length;
        continue;
      }
    }
    iovec pieces[2];
    // The parts of a pair are apart; its element is known by where the first lies.
    const size_t taken = element_.first != 0 ? cursor_.Next(pieces, std::min<size_t>(limit, element_.size))
                                             : cursor_.Next(std::span(pieces, 1), limit);
    if (taken == 0) break;
    const auto length = static_cast<size_t>(cursor_.position() - before);
    if (!Append(reinterpret_cast<uint64_t>(pieces[0].iov_base), length)) {
      cursor_.Seek(before);
      break;
    }
    bytes += length;
  }
  return {{blocks_, count_}, bytes};
}

}  // namespace weft::mpi::rma
