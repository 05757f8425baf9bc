#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "base/check.h"
#include "mpi_hybrid/datatype/datatype.h"

namespace weft::mpi {
namespace {

enum class Direction { kPack, kUnpack };

template <Direction direction>
using Packed = std::conditional_t<direction == Direction::kPack, uint8_t*, const uint8_t*>;

template <Direction direction>
inline void CopyBlock(uintptr_t memory, Packed<direction> packed, size_t length) {
  if constexpr (direction == Direction::kPack) {
    std::memcpy(packed, reinterpret_cast<const void*>(memory), length);
  } else {
    std::memcpy(reinterpret_cast<void*>(memory), packed, length);
  }
}

template <Direction direction, size_t length>
Packed<direction> CopyFixed(uintptr_t memory, Packed<direction> packed, MPI_Aint blocks, MPI_Aint stride) {
  for (; blocks >= 4; blocks -= 4) {
    CopyBlock<direction>(memory, packed, length);
    CopyBlock<direction>(memory + static_cast<uintptr_t>(stride), packed + length, length);
    CopyBlock<direction>(memory + static_cast<uintptr_t>(2 * stride), packed + 2 * length, length);
    CopyBlock<direction>(memory + static_cast<uintptr_t>(3 * stride), packed + 3 * length, length);
    memory += static_cast<uintptr_t>(4 * stride);
    packed += 4 * length;
  }
  for (; blocks > 0; --blocks) {
    CopyBlock<direction>(memory, packed, length);
    memory += static_cast<uintptr_t>(stride);
    packed += length;
  }
  return packed;
}

// `blocks` blocks of `length` bytes from `memory` on, `stride` bytes apart. Returns the end of what is packed.
template <Direction direction>
Packed<direction> CopyBlocks(uintptr_t memory, Packed<direction> packed, MPI_Aint length, MPI_Aint blocks, MPI_Aint stride) {
  switch (length) {
    case 1: return CopyFixed<direction, 1>(memory, packed, blocks, stride);
    case 2: return CopyFixed<direction, 2>(memory, packed, blocks, stride);
    case 4: return CopyFixed<direction, 4>(memory, packed, blocks, stride);
    case 8: return CopyFixed<direction, 8>(memory, packed, blocks, stride);
    case 12: return CopyFixed<direction, 12>(memory, packed, blocks, stride);
    case 16: return CopyFixed<direction, 16>(memory, packed, blocks, stride);
    case 24: return CopyFixed<direction, 24>(memory, packed, blocks, stride);
    case 32: return CopyFixed<direction, 32>(memory, packed, blocks, stride);
    case 64: return CopyFixed<direction, 64>(memory, packed, blocks, stride);
  }
  for (; blocks > 0; --blocks) {
    CopyBlock<direction>(memory, packed, static_cast<size_t>(length));
    memory += static_cast<uintptr_t>(stride);
    packed += length;
  }
  return packed;
}

// All data of the runs [run, end), once.
template <Direction direction>
Packed<direction> CopyRuns(const Run* run, const Run* end, uintptr_t origin, Packed<direction> packed) {
  for (; run < end; run += 1 + run->body) {
    uintptr_t at = origin + static_cast<uintptr_t>(run->offset);
    if (run->body == 0) {
      packed = CopyBlocks<direction>(at, packed, run->length, run->count, run->stride);
      continue;
    }
    for (MPI_Aint i = 0; i < run->count; ++i) {
      packed = CopyRuns<direction>(run + 1, run + 1 + run->body, at, packed);
      at += static_cast<uintptr_t>(run->stride);
    }
  }
  return packed;
}

}  // namespace

// Copies at a cursor: whole elements or times of a loop where some fit, else blocks, else bytes.
class CursorCopier {
 public:
  template <Direction direction>
  static void Copy(TypeCursor& cursor, Packed<direction> packed, MPI_Aint bytes) {
    WEFT_CHECK(bytes <= cursor.remaining());
    while (bytes > 0) {
      MPI_Aint done = 0;
      if (cursor.in_block_ == 0) {
        done = CopyLoops<direction>(cursor, packed, bytes);
        if (done == 0) done = CopyWholeBlocks<direction>(cursor, packed, bytes);
      }
      if (done == 0) done = CopyPart<direction>(cursor, packed, bytes);
      packed += done;
      bytes -= done;
    }
  }

 private:
  template <Direction direction>
  static MPI_Aint CopyPart(TypeCursor& cursor, Packed<direction> packed, MPI_Aint bytes) {
    const MPI_Aint length = std::min(cursor.length_ - cursor.in_block_, bytes);
    const uintptr_t at = cursor.leaf_ + static_cast<uintptr_t>(cursor.block_ * cursor.stride_ + cursor.in_block_);
    CopyBlock<direction>(at, packed, static_cast<size_t>(length));
    cursor.Advance(length);
    return length;
  }

  template <Direction direction>
  static MPI_Aint CopyWholeBlocks(TypeCursor& cursor, Packed<direction> packed, MPI_Aint bytes) {
    if (bytes < cursor.length_) return 0;
    const MPI_Aint blocks = std::min(cursor.blocks_ - cursor.block_, bytes / cursor.length_);
    const uintptr_t at = cursor.leaf_ + static_cast<uintptr_t>(cursor.block_ * cursor.stride_);
    CopyBlocks<direction>(at, packed, cursor.length_, blocks, cursor.stride_);
    const MPI_Aint done = blocks * cursor.length_;
    cursor.SkipBlocks(blocks);
    return done;
  }

  // 0 when the cursor is not at the beginning of an element or of a time through a loop, or no whole one fits.
  template <Direction direction>
  static MPI_Aint CopyLoops(TypeCursor& cursor, Packed<direction> packed, MPI_Aint bytes) {
    if (cursor.flat_ || cursor.block_ != 0) return 0;
    // `level` is the outermost one that begins here: level 0 is the sequence of elements, level n the loop levels_[n - 1].
    int level = cursor.depth_ + 1;
    uint32_t begin = cursor.node_;
    MPI_Aint iteration = 0;
    int best = -1;
    while (--level >= 0 && iteration == 0) {
      const bool elements = level == 0;
      if (begin != (elements ? 0 : cursor.levels_[level - 1].node + 1)) break;
      const MPI_Aint length = elements ? cursor.type_->size : cursor.type_->layout[cursor.levels_[level - 1].node].length;
      if (length > bytes) break;
      best = level;
      if (elements) break;
      begin = cursor.levels_[level - 1].node;
      iteration = cursor.levels_[level - 1].iteration;
    }
    if (best < 0) return 0;
    return best == 0 ? CopyElements<direction>(cursor, packed, bytes) : CopyTimes<direction>(cursor, best, packed, bytes);
  }

  template <Direction direction>
  static MPI_Aint CopyElements(TypeCursor& cursor, Packed<direction> packed, MPI_Aint bytes) {
    const Datatype& type = *cursor.type_;
    const MPI_Aint elements = std::min(bytes / type.size, cursor.count_ - cursor.element_);
    const Run* const runs = type.layout.data();
    uintptr_t origin = cursor.buffer_ + static_cast<uintptr_t>(cursor.element_ * type.extent);
    for (MPI_Aint i = 0; i < elements; ++i) {
      packed = CopyRuns<direction>(runs, runs + type.layout.size(), origin, packed);
      origin += static_cast<uintptr_t>(type.extent);
    }
    cursor.Seek(cursor.position_ + elements * type.size);
    return elements * type.size;
  }

  template <Direction direction>
  static MPI_Aint CopyTimes(TypeCursor& cursor, int depth, Packed<direction> packed, MPI_Aint bytes) {
    TypeCursor::Level& level = cursor.levels_[depth - 1];
    const Run& loop = cursor.type_->layout[level.node];
    const Run* const body = &loop + 1;
    const MPI_Aint times = std::min(bytes / loop.length, loop.count - level.iteration);
    uintptr_t origin = level.origin;
    for (MPI_Aint i = 0; i < times; ++i) {
      packed = CopyRuns<direction>(body, body + loop.body, origin, packed);
      origin += static_cast<uintptr_t>(loop.stride);
    }
    cursor.SkipTimes(depth, times);
    return times * loop.length;
  }
};

void Pack(TypeCursor& from, std::span<uint8_t> out) {
  CursorCopier::Copy<Direction::kPack>(from, out.data(), static_cast<MPI_Aint>(out.size()));
}

void Unpack(TypeCursor& to, std::span<const uint8_t> in) {
  CursorCopier::Copy<Direction::kUnpack>(to, in.data(), static_cast<MPI_Aint>(in.size()));
}

namespace {

// Between two layouts: through the first-level cache.
void CopyThrough(TypeCursor& from, TypeCursor& to, MPI_Aint bytes) {
  uint8_t packed[8192];
  while (bytes > 0) {
    const MPI_Aint part = std::min<MPI_Aint>(bytes, sizeof packed);
    Pack(from, {packed, static_cast<size_t>(part)});
    Unpack(to, {packed, static_cast<size_t>(part)});
    bytes -= part;
  }
}

}  // namespace

Error CopyTyped(const void* from, MPI_Aint from_count, const Datatype& from_type, void* to, MPI_Aint to_count,
                const Datatype& to_type) {
  const MPI_Aint data = from_count * from_type.size, room = to_count * to_type.size;
  const MPI_Aint bytes = std::min(data, room);
  if (bytes > 0) {
    const size_t length = static_cast<size_t>(bytes);
    if (from_type.dense && to_type.dense) {
      std::memmove(to, from, length);
    } else if (to_type.dense) {
      TypeCursor cursor(from, from_count, from_type);
      Pack(cursor, {static_cast<uint8_t*>(to), length});
    } else if (from_type.dense) {
      TypeCursor cursor(to, to_count, to_type);
      Unpack(cursor, {static_cast<const uint8_t*>(from), length});
    } else {
      TypeCursor source(from, from_count, from_type), sink(to, to_count, to_type);
      CopyThrough(source, sink, bytes);
    }
  }
  if (data <= room) return {};
  return Error(MPI_ERR_TRUNCATE, "a message of " + std::to_string(data) + " bytes does not fit a buffer of " + std::to_string(room));
}

}  // namespace weft::mpi
