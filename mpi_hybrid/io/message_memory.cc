#include "mpi_hybrid/io/message_memory.h"

#include <algorithm>
#include <new>
#include <utility>

namespace weft::mpi::io {

bool MessageMemory::Take(int64_t bytes, Piece* piece) {
  const auto wanted = static_cast<size_t>(bytes);
  *piece = {};
  if (bytes == 0) return true;
  // Those of one operation are of about one length. One that is too short goes, so that there are never more than were in use at a time.
  const auto fits = std::find_if(free_.begin(), free_.end(), [&](const Piece& one) { return one.room_ >= wanted; });
  if (!free_.empty()) {
    std::swap(fits != free_.end() ? *fits : free_.back(), free_.back());
    if (fits != free_.end()) *piece = std::move(free_.back());
    free_.pop_back();
  }
  if (piece->memory_ == nullptr) {
    piece->memory_.reset(new (std::nothrow) uint8_t[wanted]);
    if (piece->memory_ == nullptr && !free_.empty()) {
      free_.clear();
      piece->memory_.reset(new (std::nothrow) uint8_t[wanted]);
    }
    if (piece->memory_ == nullptr) return false;
    piece->room_ = wanted;
  }
  piece->size_ = wanted;
  return true;
}

void MessageMemory::Give(Piece piece) {
  if (piece.empty()) return;
  try {
    free_.push_back(std::move(piece));
  } catch (const std::bad_alloc&) {
    // Then it is not used again.
  }
}

}  // namespace weft::mpi::io
