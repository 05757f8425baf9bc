#include "mpi_hybrid/rma/mapped_memory.h"

#include <algorithm>

#include "base/program_memory.h"

namespace weft::mpi::rma {
namespace {

// Of one piece of a block.
uint64_t Span(const Block& block, const ElementType& type) { return uint64_t{block.bytes / type.size - 1} * type.extent + type.span; }

}  // namespace

bool MappedMemory::HasWindow() {
  if (whole_ == Whole::kUnknown) {
    whole_ = Look(reinterpret_cast<uintptr_t>(window_.base), window_.size) ? Whole::kMapped : Whole::kHasHoles;
  }
  return whole_ == Whole::kMapped;
}

// A hole may lie between the pieces of a block.
bool MappedMemory::HasPieces(std::span<const Block> blocks, const ElementType& type) {
  return std::all_of(blocks.begin(), blocks.end(), [&](const Block& block) {
    const uintptr_t one = reinterpret_cast<uintptr_t>(window_.base) + block.offset, step = static_cast<uintptr_t>(block.stride);
    const uintptr_t other = one + uint64_t{block.count - 1} * step;
    const uint64_t span = Span(block, type);
    if (Look(std::min(one, other), std::max(one, other) + span - std::min(one, other))) return true;
    uintptr_t at = one;
    for (uint32_t i = 0; i < block.count; ++i, at += step) {
      if (!Look(at, span)) return false;
    }
    return true;
  });
}

bool MappedMemory::Look(uintptr_t first, uint64_t bytes) {
  ++looks_;
  return IsMapped(reinterpret_cast<const void*>(first), bytes);
}

}  // namespace weft::mpi::rma
