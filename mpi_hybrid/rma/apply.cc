#include "mpi_hybrid/rma/apply.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

#include "base/dma_scope.h"
#include "mpi_hybrid/datatype/op.h"
#include "mpi_hybrid/rma/element_atomics.h"

namespace weft::mpi::rma {
namespace {

// A data message that was found to be in order, but for where its blocks are.
struct Data {
  bool fetches = false, accumulates = false, gives = false;
  DataHeader header;
  ElementType type = kByteElements;
  ByteSpan given;
  Block blocks[kMaxBlocks];
};

bool Parse(const MessageHeader& header, ByteSpan body, Data* data) {
  data->fetches = header.kind == MessageKind::kGet || header.kind == MessageKind::kGetAccumulate;
  data->accumulates = header.kind == MessageKind::kAccumulate || header.kind == MessageKind::kGetAccumulate;
  if (data->fetches && !header.wants_reply) return false;
  const auto op = PeekOp(body);
  if (!op) return false;
  data->gives = header.kind != MessageKind::kGet && !(header.kind == MessageKind::kGetAccumulate && *op == MPI_NO_OP);
  const auto parsed = ParseData(body, data->gives, data->blocks, &data->given);
  if (!parsed) return false;
  data->header = *parsed;
  if (!data->accumulates) return true;
  return FindElementType(parsed->basic, &data->type) && Op::IsDefined(parsed->op, parsed->basic);
}

// Whether all of the block is in the window. Where that is one piece of memory its ends tell.
bool IsInside(const Block& block, const ElementType& type, const TargetWindow& window) {
  const uint64_t span = uint64_t{block.bytes / type.size - 1} * type.extent + type.span;
  const auto at = [&](uint64_t i) { return block.offset + i * static_cast<uint64_t>(block.stride); };
  if (!window.dynamic) return window.Resolve(at(0), span) != nullptr && window.Resolve(at(block.count - 1), span) != nullptr;
  for (uint32_t i = 0; i < block.count; ++i) {
    if (window.Resolve(at(i), span) == nullptr) return false;
  }
  return true;
}

template <size_t bytes>
void CopyStrided(const uint8_t* from, ptrdiff_t from_stride, uint8_t* to, ptrdiff_t to_stride, uint32_t count, size_t) {
  for (uint32_t i = 0; i < count; ++i, from += from_stride, to += to_stride) std::memcpy(to, from, bytes);
}
template <>
void CopyStrided<0>(const uint8_t* from, ptrdiff_t from_stride, uint8_t* to, ptrdiff_t to_stride, uint32_t count, size_t bytes) {
  for (uint32_t i = 0; i < count; ++i, from += from_stride, to += to_stride) std::memcpy(to, from, bytes);
}

// `count` pieces of `bytes`, by moves of the processor where there is one of that length.
void CopyPieces(const uint8_t* from, ptrdiff_t from_stride, uint8_t* to, ptrdiff_t to_stride, uint32_t count, size_t bytes) {
  const auto copy = bytes == 4 ? CopyStrided<4> : bytes == 8 ? CopyStrided<8> : bytes == 16 ? CopyStrided<16> : CopyStrided<0>;
  copy(from, from_stride, to, to_stride, count, bytes);
}

// Blocks of an element or a few, worked on side by side in a buffer. They do not overlap; the caller excludes others.
void AccumulateGathered(MPI_Op op, const ElementType& type, const uint8_t* given, uint8_t* memory, const Block& block) {
  alignas(16) uint8_t together[4096];
  const auto most = static_cast<uint32_t>(sizeof together / block.bytes);
  const DmaScope dma;
  for (uint32_t left = block.count; left > 0;) {
    const uint32_t count = std::min(left, most);
    const size_t bytes = size_t{count} * block.bytes;
    CopyPieces(memory, block.stride, together, block.bytes, count, block.bytes);
    Op::ApplyBasic(op, type.handle, given, together, count * (block.bytes / type.size));
    CopyPieces(together, block.bytes, memory, block.stride, count, block.bytes);
    given += bytes;
    memory += static_cast<ptrdiff_t>(count) * block.stride;
    left -= count;
  }
}

// The whole block at once, where that is the same as one piece of it after the other. False: it is not, nothing was done.
bool ApplyBlock(const Data& data, const Block& block, const TargetWindow& window, bool in_turn, const uint8_t* given) {
  constexpr uint32_t kLongest = 256;  // bytes of a piece
  if (window.dynamic || data.fetches || block.count < 2 || block.bytes > kLongest || std::abs(block.stride) < block.bytes) return false;
  uint8_t* const memory = window.base + block.offset;
  if (data.accumulates) {
    if (!in_turn || data.type.first != 0) return false;
    AccumulateGathered(data.header.op, data.type, given, memory, block);
  } else {
    const DmaScope dma;
    CopyPieces(given, block.bytes, memory, block.stride, block.count, block.bytes);
  }
  return true;
}

bool WholeElements(const Data& data) {
  for (size_t i = 0; i < data.header.blocks; ++i) {
    if (data.blocks[i].bytes % data.type.size != 0) return false;
  }
  return true;
}

void Work(MPI_Op op, const ElementType& type, const uint8_t* given, uint8_t* memory, uint32_t count, uint8_t* fetched) {
  const DmaScope dma;
  if (fetched != nullptr) FetchElements(type, memory, count, fetched);
  if (given != nullptr) Op::ApplyBasic(op, type.handle, given, memory, count);
}

}  // namespace

void AccumulateElements(const AccumulateGuard& guard, MPI_Op op, const ElementType& type, const uint8_t* given,
                        uint8_t* memory, uint32_t count, uint8_t* fetched) {
  if (!guard.atomics || !HasAtomics(type, memory)) {
    const AccumulateLock lock(guard);
    Work(op, type, given, memory, count, fetched);
  } else if (!TakesWholeTurn(guard, type, count)) {
    const AtomicTurn turn(guard);
    AccumulateAtomically(op, type, given, memory, count, fetched);
  } else {
    const WholeTurn turn(guard);
    Work(op, type, given, memory, count, fetched);
  }
}

void AccumulateInTurn(const WholeTurn&, MPI_Op op, const ElementType& type, const uint8_t* given, uint8_t* memory,
                      uint32_t count, uint8_t* fetched) {
  Work(op, type, given, memory, count, fetched);
}

void CompareAndSwapElement(const AccumulateGuard& guard, const ElementType& type, const uint8_t* compare,
                           const uint8_t* given, uint8_t* memory, uint8_t* fetched) {
  if (guard.atomics && HasAtomics(type, memory)) {
    const AtomicTurn turn(guard);
    return CompareAndSwapAtomically(type, compare, given, memory, fetched);
  }
  const AccumulateLock lock(guard);
  const DmaScope dma;
  FetchElements(type, memory, 1, fetched);
  if (std::memcmp(fetched, compare, type.size) == 0) Op::ApplyBasic(MPI_REPLACE, type.handle, given, memory, 1);
}

Applied ApplyData(const MessageHeader& header, ByteSpan body, const TargetWindow& window, uint8_t* fetched,
                  size_t* fetched_bytes, MappedMemory* mapped) {
  Data data;
  *fetched_bytes = 0;
  if (!Parse(header, body, &data) || !WholeElements(data)) return Applied::kMalformed;
  const ElementType& type = data.type;
  // All of it is checked before any of it is done.
  const bool inside = std::all_of(data.blocks, data.blocks + data.header.blocks, [&](const Block& block) { return IsInside(block, type, window); });
  if (!inside) return window.dynamic && header.wants_reply ? Applied::kOutOfRange : Applied::kMalformed;
  if (mapped != nullptr && !mapped->Has({data.blocks, data.header.blocks}, type)) return Applied::kNotMapped;

  const uint8_t* given = data.given.data();
  std::optional<WholeTurn> turn;
  if (data.accumulates && TakesWholeTurn(window.guard, type, data.header.bytes / type.size)) turn.emplace(window.guard);
  const auto apply = [&](uint64_t offset, uint32_t count) {
    uint8_t* memory = window.Resolve(offset, uint64_t{count - 1} * type.extent + type.span);
    const size_t bytes = size_t{count} * type.size;
    uint8_t* before = data.fetches ? fetched + *fetched_bytes : nullptr;
    if (data.accumulates) {
      const uint8_t* from = data.gives ? given : nullptr;
      if (turn) {
        AccumulateInTurn(*turn, data.header.op, type, from, memory, count, before);
      } else {
        AccumulateElements(window.guard, data.header.op, type, from, memory, count, before);
      }
      if (data.fetches) *fetched_bytes += bytes;
      if (data.gives) given += bytes;
      return;
    }
    const DmaScope dma;
    if (data.fetches) {
      FetchElements(type, memory, count, fetched + *fetched_bytes);
      *fetched_bytes += bytes;
    }
    if (!data.gives) return;
    std::memcpy(memory, given, bytes);
    given += bytes;
  };
  for (const Block& block : std::span(data.blocks, data.header.blocks)) {
    if (ApplyBlock(data, block, window, turn.has_value(), given)) {
      given += size_t{block.count} * block.bytes;
      continue;
    }
    uint64_t offset = block.offset;
    for (uint32_t i = 0; i < block.count; ++i, offset += static_cast<uint64_t>(block.stride)) apply(offset, block.bytes / type.size);
  }
  return Applied::kDone;
}

Applied ApplyCompareAndSwap(const MessageHeader& header, ByteSpan body, const TargetWindow& window, uint8_t* fetched,
                            size_t* fetched_bytes) {
  *fetched_bytes = 0;
  const auto parsed = ParseCompareAndSwap(body);
  ElementType type;
  if (!parsed || !header.wants_reply || !FindElementType(parsed->basic, &type) || type.size != parsed->origin.size()) {
    return Applied::kMalformed;
  }
  uint8_t* memory = window.Resolve(parsed->offset, type.span);
  if (memory == nullptr) return window.dynamic ? Applied::kOutOfRange : Applied::kMalformed;
  CompareAndSwapElement(window.guard, type, parsed->compare.data(), parsed->origin.data(), memory, fetched);
  *fetched_bytes = type.size;
  return Applied::kDone;
}

}  // namespace weft::mpi::rma
