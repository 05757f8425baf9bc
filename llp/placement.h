#ifndef LLP_PLACEMENT_H_
#define LLP_PLACEMENT_H_

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/byte_reader.h"
#include "base/check.h"
#include "base/copy.h"
#include "base/program_memory.h"

namespace weft::llp {

// Tracks how much of the payload of one ULPDU has been placed in the memory that the sink named for it. Owns neither
// the memory nor the list.
class Placement {
 public:
  // `ours`: see UlpduPlan.
  void Start(std::span<const iovec> memory, bool ours) {
    memory_ = memory;
    in_piece_ = 0;
    ours_ = ours;
  }

  // Returns false if the memory is no longer mapped.
  [[nodiscard]] bool Copy(ByteSpan bytes) {
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), CurrentPiece());
      uint8_t* const to = static_cast<uint8_t*>(memory_.front().iov_base) + in_piece_;
      if (ours_) {
        CopyShortBytes(to, bytes.data(), count);
      } else if (!CopyToProgram(to, bytes.data(), count)) {
        return false;
      }
      in_piece_ += count;
      bytes = bytes.subspan(count);
    }
    return true;
  }

  // Copies bytes from several places. A thread of Weft needs one system call for all of them (base/program_memory.h).
  [[nodiscard]] bool CopyAll(std::span<const iovec> pieces) {
    if (ThreadOfOurs() && !ours_) {
      size_t bytes = 0;
      for (const iovec& piece : pieces) bytes += piece.iov_len;
      std::array<iovec, 8> memory;
      const Listed listed = List(bytes, memory);
      if (listed.bytes == bytes) {
        Advance(bytes);
        return ScatterToProgramMemory({memory.data(), listed.pieces}, pieces);
      }
    }
    return std::all_of(pieces.begin(), pieces.end(), [this](const iovec& piece) { return Copy({static_cast<const uint8_t*>(piece.iov_base), piece.iov_len}); });
  }

  // Another party, such as the kernel or the peer, has placed `count` bytes.
  void Advance(size_t count) {
    while (count != 0) {
      const size_t step = std::min(count, CurrentPiece());
      in_piece_ += step;
      count -= step;
    }
  }

  // Lists the memory of the next `count` bytes, as far as `out` has room; returns the number of pieces and of bytes.
  struct Listed {
    size_t pieces;
    size_t bytes;
  };
  Listed List(size_t count, std::span<iovec> out) const {
    Listed listed{0, 0};
    size_t skip = in_piece_;
    for (const iovec& piece : memory_) {
      if (listed.bytes == count || listed.pieces == out.size()) break;
      const size_t length = std::min(piece.iov_len - skip, count - listed.bytes);
      if (length != 0) out[listed.pieces++] = {static_cast<uint8_t*>(piece.iov_base) + skip, length};
      listed.bytes += length;
      skip = 0;
    }
    return listed;
  }

 private:
  // Bytes left in the piece that takes the next byte. The sink has named memory for all of the payload.
  size_t CurrentPiece() {
    for (;;) {
      WEFT_CHECK(!memory_.empty());
      if (in_piece_ < memory_.front().iov_len) return memory_.front().iov_len - in_piece_;
      memory_ = memory_.subspan(1);
      in_piece_ = 0;
    }
  }

  std::span<const iovec> memory_;  // from the current piece on
  size_t in_piece_ = 0;
  bool ours_ = false;
};

}  // namespace weft::llp

#endif  // LLP_PLACEMENT_H_
