#include "mpi_hybrid/rma/process_copy.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/datatype/op.h"
#include "mpi_hybrid/rma/pairwise.h"

namespace weft::mpi::rma {
namespace {

constexpr size_t kBatch = ProcessMemory::kMostPieces;  // of one system call
constexpr size_t kBuffer = 256 * 1024;
constexpr uint64_t kLongestPiece = LibraryLock::kMostCopied;  // bytes; then threads that wait for the lock have it

// Elements of that process, one run of them after the other, and where they are here meanwhile.
struct Batch {
  struct Run {
    uint64_t address;
    uint32_t elements;
  };
  Run runs[kBatch];
  size_t count = 0, bytes = 0;
  uint8_t memory[2 * kSlotBytes];

  int Move(Direction direction, ProcessMemory& process, const ElementType& type) {
    iovec here[kBatch], there[kBatch];
    uint8_t* at = memory;
    for (size_t i = 0; i < count; ++i) {
      const size_t span = Span(type, runs[i].elements);
      here[i] = {at, span};
      there[i] = {reinterpret_cast<void*>(runs[i].address), span};
      at += span;
    }
    return process.Move(direction, here, there, count, bytes);
  }
  static size_t Span(const ElementType& type, uint32_t elements) {
    return size_t{elements - 1} * type.extent + type.span;
  }
};

int Accumulate(ProcessMemory& process, const AccumulateGuard& guard, MPI_Op op, const ElementType& type, Batch& batch,
               const uint8_t** given, uint8_t** fetched) {
  const WholeTurn turn(guard);
  if (int error = batch.Move(Direction::kFromProcess, process, type); error != 0) return error;
  uint8_t* at = batch.memory;
  for (size_t i = 0; i < batch.count; ++i) {
    const uint32_t elements = batch.runs[i].elements;
    const size_t packed = size_t{elements} * type.size;
    if (*fetched != nullptr) {
      FetchElements(type, at, elements, *fetched);
      *fetched += packed;
    }
    if (*given != nullptr) {
      Op::ApplyBasic(op, type.handle, *given, at, elements);
      *given += packed;
    }
    at += Batch::Span(type, elements);
  }
  return *given == nullptr ? 0 : batch.Move(Direction::kToProcess, process, type);
}

}  // namespace

int CopyWithProcess(Direction direction, ProcessMemory& process, TypeCursor& here, TypeCursor& there, size_t bytes) {
  Pairwise pairs(here, there, bytes, kLongestPiece);
  iovec ours[kBatch], theirs[kBatch];
  bool more = true;
  while (more) {
    size_t count = 0, length = 0;
    uint8_t* mine;
    uint64_t its;
    for (size_t piece; count < kBatch && length < kLongestPiece && (more = pairs.Next(&mine, &its, &piece)); ++count) {
      ours[count] = {mine, piece};
      theirs[count] = {reinterpret_cast<void*>(its), piece};
      length += piece;
    }
    if (int error = process.Move(direction, ours, theirs, count, length); error != 0) return error;
    if (more) LibraryLock::HandOver();
  }
  return 0;
}

int CopyThroughBuffer(Direction direction, ProcessMemory& process, TypeCursor& here, TypeCursor& there, size_t bytes) {
  const size_t room = std::min(bytes, kBuffer);
  const std::unique_ptr<uint8_t[]> buffer(new (std::nothrow) uint8_t[room]);
  if (buffer == nullptr) return CopyWithProcess(direction, process, here, there, bytes);
  while (bytes > 0) {
    const std::span<uint8_t> part(buffer.get(), std::min(bytes, room));
    if (direction == Direction::kToProcess) Pack(here, part);
    TypeCursor packed(part.data(), static_cast<MPI_Aint>(part.size()), *Datatype::Find(MPI_BYTE));
    if (int error = CopyWithProcess(direction, process, packed, there, part.size()); error != 0) return error;
    if (direction == Direction::kFromProcess) Unpack(here, part);
    bytes -= part.size();
  }
  return 0;
}

int WriteBlocks(ProcessMemory& process, const BlockSource::Part& part, const uint8_t* given) {
  iovec ours[kBatch], theirs[kBatch];
  size_t count = 0, bytes = 0;
  const auto finish = [&] {
    const int error = count == 0 ? 0 : process.Move(Direction::kToProcess, ours, theirs, count, bytes);
    count = bytes = 0;
    return error;
  };
  for (const Block& block : part.blocks) {
    uint64_t address = block.offset;
    for (uint32_t i = 0; i < block.count; ++i, address += static_cast<uint64_t>(block.stride)) {
      if (count == kBatch) {
        if (int error = finish(); error != 0) return error;
      }
      ours[count] = {const_cast<uint8_t*>(given), block.bytes};
      theirs[count++] = {reinterpret_cast<void*>(address), block.bytes};
      given += block.bytes;
      bytes += block.bytes;
    }
  }
  return finish();
}

int AccumulateInProcess(ProcessMemory& process, const AccumulateGuard& guard, MPI_Op op, const ElementType& type,
                        const BlockSource::Part& part, const uint8_t* given, uint8_t* fetched) {
  Batch batch;
  const auto finish = [&] {
    const int error = batch.count == 0 ? 0 : Accumulate(process, guard, op, type, batch, &given, &fetched);
    batch.count = batch.bytes = 0;
    return error;
  };
  for (const Block& block : part.blocks) {
    const uint32_t elements = block.bytes / type.size;
    const size_t span = Batch::Span(type, elements);
    uint64_t address = block.offset;
    for (uint32_t i = 0; i < block.count; ++i, address += static_cast<uint64_t>(block.stride)) {
      if (batch.count == kBatch || batch.bytes + span > sizeof batch.memory) {
        if (int error = finish(); error != 0) return error;
      }
      batch.runs[batch.count++] = {address, elements};
      batch.bytes += span;
    }
  }
  return finish();
}

int CompareAndSwapInProcess(ProcessMemory& process, const AccumulateGuard& guard, const ElementType& type, const uint8_t* compare,
                            const uint8_t* given, uint64_t address, uint8_t* fetched) {
  const WholeTurn turn(guard);
  if (int error = process.Read(address, fetched, type.size); error != 0) return error;
  if (std::memcmp(fetched, compare, type.size) != 0) return 0;
  return process.Write(given, address, type.size);
}

}  // namespace weft::mpi::rma
