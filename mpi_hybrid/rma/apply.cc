#include "mpi_hybrid/rma/apply.h"

#include <cstring>
#include <optional>

#include "base/dma_scope.h"
#include "mpi_hybrid/datatype/op.h"
#include "mpi_hybrid/rma/element_atomics.h"

namespace weft::mpi::rma {
namespace {

// A data message that was found to be in order, but for where its blocks are.
struct Data {
  bool fetches = false, accumulates = false, gives = false;
  DataHeader header;
  ElementType type{MPI_BYTE, 1, 1, 1, 0, 0};
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

// Calls `visit(offset, elements)` for each block while it says true; whether it always did.
template <typename Visit>
bool ForEachBlock(const Data& data, Visit visit) {
  for (size_t i = 0; i < data.header.blocks; ++i) {
    const Block& block = data.blocks[i];
    uint64_t offset = block.offset;
    for (uint32_t k = 0; k < block.count; ++k, offset += static_cast<uint64_t>(block.stride)) {
      if (!visit(offset, block.bytes / data.type.size)) return false;
    }
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
  } else if (count < guard.many()) {
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
                  size_t* fetched_bytes) {
  Data data;
  *fetched_bytes = 0;
  if (!Parse(header, body, &data) || !WholeElements(data)) return Applied::kMalformed;
  const ElementType& type = data.type;
  // All of it is checked before any of it is done.
  const bool inside = ForEachBlock(data, [&](uint64_t offset, uint32_t count) {
    return window.Resolve(offset, uint64_t{count - 1} * type.extent + type.span) != nullptr;
  });
  if (!inside) return window.dynamic && header.wants_reply ? Applied::kOutOfRange : Applied::kMalformed;

  const uint8_t* given = data.given.data();
  std::optional<WholeTurn> turn;
  if (data.accumulates && data.header.bytes / type.size >= window.guard.many()) turn.emplace(window.guard);
  ForEachBlock(data, [&](uint64_t offset, uint32_t count) {
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
      return true;
    }
    const DmaScope dma;
    if (data.fetches) {
      FetchElements(type, memory, count, fetched + *fetched_bytes);
      *fetched_bytes += bytes;
    }
    if (!data.gives) return true;
    std::memcpy(memory, given, bytes);
    given += bytes;
    return true;
  });
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
