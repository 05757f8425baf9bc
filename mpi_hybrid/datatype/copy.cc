#include <algorithm>
#include <memory>
#include <string>

#include "base/check.h"
#include "base/copy.h"
#include "mpi_hybrid/datatype/datatype.h"

namespace weft::mpi {
namespace {

enum class Direction { kPack, kUnpack };

template <Direction direction>
using Packed = std::conditional_t<direction == Direction::kPack, uint8_t*, const uint8_t*>;

template <Direction direction>
inline void CopyBlock(uintptr_t memory, Packed<direction> packed, size_t length) {
  if constexpr (direction == Direction::kPack) {
    CopyBytes(packed, reinterpret_cast<const void*>(memory), length);
  } else {
    CopyBytes(reinterpret_cast<void*>(memory), packed, length);
  }
}

// `blocks` blocks of `length` bytes, `stride` bytes apart in memory and `packed_stride` where they are packed.
template <Direction direction, size_t length>
inline void CopyFixed(uintptr_t memory, MPI_Aint stride, Packed<direction> packed, MPI_Aint packed_stride, MPI_Aint blocks) {
  for (; blocks >= 4; blocks -= 4) {
    CopyBlock<direction>(memory, packed, length);
    CopyBlock<direction>(memory + static_cast<uintptr_t>(stride), packed + packed_stride, length);
    CopyBlock<direction>(memory + static_cast<uintptr_t>(2 * stride), packed + 2 * packed_stride, length);
    CopyBlock<direction>(memory + static_cast<uintptr_t>(3 * stride), packed + 3 * packed_stride, length);
    memory += static_cast<uintptr_t>(4 * stride);
    packed += 4 * packed_stride;
  }
  for (; blocks > 0; --blocks) {
    CopyBlock<direction>(memory, packed, length);
    memory += static_cast<uintptr_t>(stride);
    packed += packed_stride;
  }
}

template <Direction direction>
void CopyBlocks(uintptr_t memory, MPI_Aint stride, Packed<direction> packed, MPI_Aint packed_stride, MPI_Aint length,
                MPI_Aint blocks) {
  switch (length) {
    case 1: return CopyFixed<direction, 1>(memory, stride, packed, packed_stride, blocks);
    case 2: return CopyFixed<direction, 2>(memory, stride, packed, packed_stride, blocks);
    case 4: return CopyFixed<direction, 4>(memory, stride, packed, packed_stride, blocks);
    case 8: return packed_stride == 8 ? CopyFixed<direction, 8>(memory, stride, packed, 8, blocks)
                                      : CopyFixed<direction, 8>(memory, stride, packed, packed_stride, blocks);
    case 12: return CopyFixed<direction, 12>(memory, stride, packed, packed_stride, blocks);
    case 16: return CopyFixed<direction, 16>(memory, stride, packed, packed_stride, blocks);
    case 24: return CopyFixed<direction, 24>(memory, stride, packed, packed_stride, blocks);
    case 32: return CopyFixed<direction, 32>(memory, stride, packed, packed_stride, blocks);
    case 64: return CopyFixed<direction, 64>(memory, stride, packed, packed_stride, blocks);
  }
  for (; blocks > 0; --blocks) {
    CopyBlock<direction>(memory, packed, static_cast<size_t>(length));
    memory += static_cast<uintptr_t>(stride);
    packed += packed_stride;
  }
}

template <Direction direction>
void CopyRuns(const Run* run, const Run* end, uintptr_t origin, Packed<direction> packed);

// A loop around leaves, such as an array of structures: leaf by leaf, over as many times as stay in the first-level cache.
template <Direction direction>
void CopyLeaves(const Run* body, const Run* end, uintptr_t origin, MPI_Aint stride, MPI_Aint times, MPI_Aint bytes,
                Packed<direction> packed) {
  constexpr MPI_Aint kTileBytes = 8192;
  const MPI_Aint most = std::max<MPI_Aint>(1, kTileBytes / bytes);
  while (times > 0) {
    const MPI_Aint tile = std::min(times, most);
    Packed<direction> at = packed;
    for (const Run* run = body; run < end; ++run) {
      const uintptr_t memory = origin + static_cast<uintptr_t>(run->offset);
      for (MPI_Aint block = 0; block < run->count; ++block) {
        CopyBlocks<direction>(memory + static_cast<uintptr_t>(block * run->stride), stride, at, bytes, run->length, tile);
        at += run->length;
      }
    }
    origin += static_cast<uintptr_t>(tile * stride);
    packed += tile * bytes;
    times -= tile;
  }
}

// The runs [body, end) `times` times, `stride` bytes apart; each time has `bytes` bytes of data.
template <Direction direction>
void CopyTimes(const Run* body, const Run* end, uintptr_t origin, MPI_Aint stride, MPI_Aint times, MPI_Aint bytes,
               Packed<direction> packed) {
  constexpr MPI_Aint kFewBlocks = 16, kFewTimes = 4;
  MPI_Aint blocks = 0;
  for (const Run* run = body; run < end && blocks <= kFewBlocks; ++run) blocks += run->body > 0 ? kFewBlocks + 1 : run->count;
  if (blocks <= kFewBlocks && times >= kFewTimes) {
    return CopyLeaves<direction>(body, end, origin, stride, times, bytes, packed);
  }
  for (; times > 0; --times) {
    CopyRuns<direction>(body, end, origin, packed);
    origin += static_cast<uintptr_t>(stride);
    packed += bytes;
  }
}

// All data of the runs [run, end), once.
template <Direction direction>
void CopyRuns(const Run* run, const Run* end, uintptr_t origin, Packed<direction> packed) {
  for (; run < end; run += 1 + run->body) {
    const uintptr_t at = origin + static_cast<uintptr_t>(run->offset);
    if (run->body > 0) {
      CopyTimes<direction>(run + 1, run + 1 + run->body, at, run->stride, run->count, run->length, packed);
    } else if (run->length == 8 && run->count <= 2) {  // what irregular types of doubles consist of
      CopyBlock<direction>(at, packed, 8);
      if (run->count == 2) CopyBlock<direction>(at + static_cast<uintptr_t>(run->stride), packed + 8, 8);
    } else {
      CopyBlocks<direction>(at, run->stride, packed, run->length, run->length, run->count);
    }
    packed += run->length * run->count;
  }
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
    CopyBlocks<direction>(at, cursor.stride_, packed, cursor.length_, cursor.length_, blocks);
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
    return best == 0 ? CopyElements<direction>(cursor, packed, bytes) : CopyLoop<direction>(cursor, best, packed, bytes);
  }

  template <Direction direction>
  static MPI_Aint CopyElements(TypeCursor& cursor, Packed<direction> packed, MPI_Aint bytes) {
    const Datatype& type = *cursor.type_;
    const MPI_Aint elements = std::min(bytes / type.size, cursor.count_ - cursor.element_);
    const Run* const runs = type.layout.data();
    const uintptr_t origin = cursor.buffer_ + static_cast<uintptr_t>(cursor.element_ * type.extent);
    CopyTimes<direction>(runs, runs + type.layout.size(), origin, type.extent, elements, type.size, packed);
    cursor.Seek(cursor.position_ + elements * type.size);
    return elements * type.size;
  }

  template <Direction direction>
  static MPI_Aint CopyLoop(TypeCursor& cursor, int depth, Packed<direction> packed, MPI_Aint bytes) {
    TypeCursor::Level& level = cursor.levels_[depth - 1];
    const Run& loop = cursor.type_->layout[level.node];
    const Run* const body = &loop + 1;
    const MPI_Aint times = std::min(bytes / loop.length, loop.count - level.iteration);
    CopyTimes<direction>(body, body + loop.body, level.origin, loop.stride, times, loop.length, packed);
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
      MoveBytes(to, from, length);
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
  return Error(MPI_ERR_TRUNCATE,
               "a message of " + std::to_string(data) + " bytes does not fit a buffer of " + std::to_string(room));
}

}  // namespace weft::mpi
