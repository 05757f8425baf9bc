#include "mpi_hybrid/io/transfer.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace weft::mpi::io {
namespace {

constexpr size_t kPieces = 256;  // of memory, to a system call
constexpr int64_t kMostAtOnce = int64_t{1} << 30;  // bytes; Linux moves at most 2 GiB
// A gap that costs less to read than another system call.
constexpr int64_t kGapWorthReading = 8192;

// Takes `bytes` away from the front.
std::span<iovec> Advance(std::span<iovec> pieces, size_t bytes) {
  while (!pieces.empty() && bytes >= pieces[0].iov_len) {
    bytes -= pieces[0].iov_len;
    pieces = pieces.subspan(1);
  }
  if (bytes > 0) {
    pieces[0].iov_base = static_cast<uint8_t*>(pieces[0].iov_base) + bytes;
    pieces[0].iov_len -= bytes;
  }
  return pieces;
}

template <typename Call>
Moved MoveRange(std::span<iovec> pieces, int64_t offset, bool writing, Call call) {
  Moved moved;
  pieces = Advance(pieces, 0);  // none that is empty in front
  while (!pieces.empty()) {
    const ssize_t result = call(pieces, offset + moved.bytes);
    if (result == -EINTR || result == -EAGAIN) continue;
    if (result < 0) {
      moved.error = static_cast<int>(-result);
      return moved;
    }
    // A file that takes nothing and does not say why must not hold us forever.
    if (result == 0) {
      if (writing) moved.error = ENOSPC;
      return moved;
    }
    moved.bytes += result;
    pieces = Advance(pieces, static_cast<size_t>(result));
  }
  return moved;
}

// Moves one range of the file by pieces of memory.
template <typename Move>
Moved MovePieces(const FileRange& range, TypeCursor& memory, Move move) {
  Moved moved;
  std::array<iovec, kPieces> pieces;
  while (moved.bytes < range.bytes) {
    const auto limit = static_cast<size_t>(std::min(range.bytes - moved.bytes, kMostAtOnce));
    const int64_t before = memory.position();
    const size_t count = memory.Next(pieces, limit);
    const int64_t wanted = memory.position() - before;
    const Moved part = move(std::span(pieces).first(count), range.offset + moved.bytes);
    moved.bytes += part.bytes;
    moved.error = part.error;
    if (part.error != 0 || part.bytes < wanted) return moved;
  }
  return moved;
}

// The ranges from a place on that a buffer holds with the gaps between them.
struct Stretch {
  std::vector<FileRange> ranges;
  int64_t data = 0;
  int64_t begin() const { return ranges.front().offset; }
  int64_t end() const { return ranges.back().end(); }
};

// False: none is left. `next` is the first range of what follows, on the way in and out.
class Stretches {
 public:
  Stretches(RangeCursor& cursor, int64_t room, int64_t widest_gap) : cursor_(cursor), room_(room), widest_gap_(widest_gap) {}

  bool Next(Stretch* stretch) {
    stretch->ranges.clear();
    stretch->data = 0;
    for (;;) {
      if (held_.bytes == 0 && !cursor_.Next(&held_)) break;
      if (!stretch->ranges.empty() &&
          (held_.end() - stretch->begin() > room_ || held_.offset - stretch->end() > widest_gap_)) {
        break;
      }
      stretch->ranges.push_back(held_);
      stretch->data += held_.bytes;
      held_.bytes = 0;
    }
    return !stretch->ranges.empty();
  }

 private:
  RangeCursor& cursor_;
  const int64_t room_, widest_gap_;
  FileRange held_;
};

std::unique_ptr<uint8_t[]> MakeBuffer(int64_t bytes) { return std::unique_ptr<uint8_t[]>(new (std::nothrow) uint8_t[static_cast<size_t>(bytes)]); }

Moved ReadWhole(RawFile& file, uint8_t* buffer, int64_t bytes, int64_t offset) {
  iovec piece = {buffer, static_cast<size_t>(bytes)};
  return ReadRange(file, {&piece, 1}, offset);
}

// Reads a stretch and picks its ranges out; less when the file ends in it.
Moved ReadStretch(RawFile& file, const Stretch& stretch, uint8_t* buffer, TypeCursor& memory) {
  const Moved whole = ReadWhole(file, buffer, stretch.end() - stretch.begin(), stretch.begin());
  Moved moved{0, whole.error};
  const int64_t there = stretch.begin() + whole.bytes;
  for (const FileRange& range : stretch.ranges) {
    const int64_t bytes = std::clamp<int64_t>(there - range.offset, 0, range.bytes);
    Unpack(memory, {buffer + (range.offset - stretch.begin()), static_cast<size_t>(bytes)});
    moved.bytes += bytes;
    if (bytes < range.bytes) break;
  }
  return moved;
}

// Reads a stretch, puts its ranges in and writes it back; the caller has it locked.
Moved RewriteStretch(RawFile& file, const Stretch& stretch, uint8_t* buffer, TypeCursor& memory) {
  const int64_t length = stretch.end() - stretch.begin();
  if (stretch.data < length) {
    const Moved whole = ReadWhole(file, buffer, length, stretch.begin());
    if (whole.error != 0) return {0, whole.error};
    std::memset(buffer + whole.bytes, 0, static_cast<size_t>(length - whole.bytes));  // what is behind the end
  }
  for (const FileRange& range : stretch.ranges) {
    Pack(memory, {buffer + (range.offset - stretch.begin()), static_cast<size_t>(range.bytes)});
  }
  iovec piece = {buffer, static_cast<size_t>(length)};
  const Moved written = WriteRange(file, {&piece, 1}, stretch.begin());
  return {written.error == 0 ? stretch.data : 0, written.error};
}

}  // namespace

Moved ReadRange(RawFile& file, std::span<iovec> pieces, int64_t offset) {
  return MoveRange(pieces, offset, false, [&](std::span<const iovec> some, int64_t at) { return file.ReadAt(some, at); });
}

Moved WriteRange(RawFile& file, std::span<iovec> pieces, int64_t offset) {
  return MoveRange(pieces, offset, true, [&](std::span<const iovec> some, int64_t at) { return file.WriteAt(some, at); });
}

Moved ReadRanges(RawFile& file, RangeCursor& ranges, TypeCursor& memory, const Sieving& sieving) {
  const auto read = [&](std::span<iovec> pieces, int64_t offset) { return ReadRange(file, pieces, offset); };
  // Without sieving each stretch is one range.
  const bool sieves = sieving.when != Sieving::When::kNever;
  const int64_t widest = sieving.when == Sieving::When::kAlways ? INT64_MAX : kGapWorthReading;
  Stretches stretches(ranges, sieves ? sieving.buffer_bytes : 0, widest);
  std::unique_ptr<uint8_t[]> buffer;
  Stretch stretch;
  Moved moved;
  while (stretches.Next(&stretch)) {
    Moved part;
    if (stretch.ranges.size() > 1) {
      if (!buffer) buffer = MakeBuffer(sieving.buffer_bytes);
      if (!buffer) return {moved.bytes, ENOMEM};
      part = ReadStretch(file, stretch, buffer.get(), memory);
    } else {
      part = MovePieces(stretch.ranges[0], memory, read);
    }
    moved.bytes += part.bytes;
    moved.error = part.error;
    if (part.error != 0 || part.bytes < stretch.data) break;
  }
  return moved;
}

Moved WriteRanges(RawFile& file, RangeCursor& ranges, TypeCursor& memory) {
  const auto write = [&](std::span<iovec> pieces, int64_t offset) { return WriteRange(file, pieces, offset); };
  Moved moved;
  for (FileRange range; ranges.Next(&range);) {
    const Moved part = MovePieces(range, memory, write);
    moved.bytes += part.bytes;
    moved.error = part.error;
    if (part.error != 0) break;
  }
  return moved;
}

Moved WriteRangesLocked(RawFile& file, RangeCursor& ranges, TypeCursor& memory, int64_t buffer_bytes) {
  const auto write = [&](std::span<iovec> pieces, int64_t offset) { return WriteRange(file, pieces, offset); };
  Stretches stretches(ranges, buffer_bytes, INT64_MAX);
  std::unique_ptr<uint8_t[]> buffer = MakeBuffer(buffer_bytes);
  if (!buffer) return {0, ENOMEM};
  Stretch stretch;
  Moved moved;
  while (stretches.Next(&stretch)) {
    const int64_t length = stretch.end() - stretch.begin();
    if (const int error = file.Lock(stretch.begin(), length, true); error != 0) return {moved.bytes, error};
    const Moved part = stretch.ranges.size() > 1 ? RewriteStretch(file, stretch, buffer.get(), memory)
                                                 : MovePieces(stretch.ranges[0], memory, write);
    (void)file.Unlock(stretch.begin(), length);
    moved.bytes += part.bytes;
    moved.error = part.error;
    if (part.error != 0) break;
  }
  return moved;
}

}  // namespace weft::mpi::io
