#ifndef TRANSPORT_FPDU_SEGMENTER_H_
#define TRANSPORT_FPDU_SEGMENTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/byte_reader.h"

namespace weft::transport {

// Cuts the bytes of a captured MPA connection into pieces of one start-up frame or one FPDU each, however they were
// read and written. Wireshark's dissector requires that segments begin where FPDUs do, and with markers one FPDU in
// each segment. Knows only the lengths of RFC 5044 (sections 4 and 7.1). Data that is not MPA passes unchanged.
class FpduSegmenter {
 public:
  enum Direction : uint8_t { kFromInitiator = 0, kFromResponder = 1 };
  using Emit = std::function<void(ByteSpan piece)>;

  // Adds bytes of a direction, and emits complete pieces. Holds back at most one FPDU.
  void Add(Direction direction, ByteSpan bytes, const Emit& emit);
  // Emits what was held back, because nothing follows.
  void Flush(Direction direction, const Emit& emit);

 private:
  enum class Phase : uint8_t { kStartUp, kFpdus, kNotMpa };
  struct Side {
    Phase phase = Phase::kStartUp;
    bool wants_markers = false;  // in the data that the other side sends
    uint64_t position = 0;       // of the next FPDU, relative to the end of start-up
    std::vector<uint8_t> held;
  };

  static constexpr size_t kUnknown = 0;

  // Length of the first piece of `bytes`; kUnknown if `bytes` is too short to tell.
  size_t NextLength(Side& side, const Side& other, ByteSpan bytes);
  static size_t StartUpLength(Side& side, ByteSpan bytes);
  static size_t FpduLength(uint64_t position, bool markers, ByteSpan bytes);

  Side sides_[2];
};

}  // namespace weft::transport

#endif  // TRANSPORT_FPDU_SEGMENTER_H_
