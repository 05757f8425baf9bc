#include "mpi_hybrid/rma/mapped_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/program_memory.h"

namespace weft::mpi::rma {
namespace {

uintptr_t PageBytes() {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return page;
}

// Of one piece of a block.
uint64_t Span(const Block& block, const ElementType& type) { return uint64_t{block.bytes / type.size - 1} * type.extent + type.span; }

}  // namespace

// What lies between the blocks is asked for as well where that is not more work: the next messages are likely to lie there. There may be a hole
// between them.
bool MappedMemory::Has(std::span<const Block> blocks, const ElementType& type) {
  if (blocks.empty()) return true;
  const uintptr_t page = PageBytes();
  Range whole{UINTPTR_MAX, 0};
  uint64_t pieces = 0;  // pages of them
  for (const Block& block : blocks) {
    const uintptr_t one = base_ + block.offset, other = one + uint64_t{block.count - 1} * static_cast<uint64_t>(block.stride);
    const uint64_t span = Span(block, type);
    whole = {std::min({whole.first, one, other}), std::max({whole.end, one + span, other + span})};
    pieces += block.count * (span / page + 1);
  }
  whole = {whole.first & ~(page - 1), (whole.end + page - 1) & ~(page - 1)};
  if (known_.Contains(whole)) return true;
  const Range all = known_.end == 0 ? whole : Range{std::min(known_.first, whole.first), std::max(known_.end, whole.end)};
  const uint64_t news = (all.end - all.first - (known_.end - known_.first)) / page;
  return (news <= pieces && HasWhole(all)) || HasPieces(blocks, type);
}

bool MappedMemory::HasWhole(const Range& range) {
  const Range sides[] = {{range.first, known_.end == 0 ? range.end : known_.first}, {known_.end == 0 ? range.end : known_.end, range.end}};
  if (!Look(sides)) return false;
  known_ = range;
  return true;
}

bool MappedMemory::HasPieces(std::span<const Block> blocks, const ElementType& type) {
  const uintptr_t page = PageBytes();
  std::array<Range, 64> ranges;
  size_t count = 0;
  Range last;
  for (const Block& block : blocks) {
    const uint64_t span = Span(block, type);
    uintptr_t at = base_ + block.offset;
    for (uint32_t i = 0; i < block.count; ++i, at += static_cast<uintptr_t>(block.stride)) {
      const Range pages{at & ~(page - 1), (at + span + page - 1) & ~(page - 1)};
      if (known_.Contains(pages) || last.Contains(pages)) continue;
      ranges[count++] = last = pages;
      if (count < ranges.size()) continue;
      if (!Look(ranges)) return false;
      count = 0;
    }
  }
  return Look(std::span(ranges).first(count));
}

bool MappedMemory::Look(std::span<const Range> ranges) {
  std::array<iovec, 64> pieces;
  for (size_t i = 0; i < ranges.size(); ++i) {
    pieces[i] = {reinterpret_cast<void*>(ranges[i].first), ranges[i].end - ranges[i].first};
    looks_ += pieces[i].iov_len / PageBytes();
  }
  return IsProgramMemory(std::span(pieces).first(ranges.size()));
}

}  // namespace weft::mpi::rma
