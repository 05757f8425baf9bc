#ifndef TRANSPORT_FPDU_SEGMENTER_H_
#define TRANSPORT_FPDU_SEGMENTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/byte_reader.h"

namespace weft::transport {

// Cuts the bytes of a captured MPA connection so that each piece is one start-up frame or one FPDU, whatever the reads
// and writes were: Wireshark's dissector wants segments to begin where FPDUs do, and with markers one FPDU in each.
// Knows only the lengths of RFC 5044 (sections 4 and 7.1), and passes on what is not MPA as it comes.
class FpduSegmenter {
 public:
  enum Direction : uint8_t { kFromInitiator = 0, kFromResponder = 1 };
  using Emit = std::function<void(ByteSpan piece)>;

  // Takes the next bytes of a direction and emits what is whole. Holds back at most one FPDU.
  void Add(Direction direction, ByteSpan bytes, const Emit& emit);
  // Emits what is held back, because nothing will follow.
  void Flush(Direction direction, const Emit& emit);

 private:
  enum class Phase : uint8_t { kStartUp, kFpdus, kNotMpa };
  struct Side {
    Phase phase = Phase::kStartUp;
    bool wants_markers = false;  // in what the other side sends
    uint64_t position = 0;       // of the next FPDU, among the bytes after start-up
    std::vector<uint8_t> held;
  };

  static constexpr size_t kUnknown = 0;

  // Length of the piece that `bytes` begins with, kUnknown while too little of it is there.
  size_t NextLength(Side& side, const Side& other, ByteSpan bytes);
  static size_t StartUpLength(Side& side, ByteSpan bytes);
  static size_t FpduLength(uint64_t position, bool markers, ByteSpan bytes);

  Side sides_[2];
};

}  // namespace weft::transport

#endif  // TRANSPORT_FPDU_SEGMENTER_H_
