#ifndef MPA_FPDU_LAYOUT_H_
#define MPA_FPDU_LAYOUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

// The arithmetic of FPDUs and markers, RFC 5044 section 4. All lengths and positions are in bytes.
//
//       0                   1                   2                   3
//       0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//      +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//      |          ULPDU_Length         |             ULPDU             ~
//      ~                               +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//      |                               |          PAD (0-3 octets)     |
//      +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//      |                             CRC                               |
//      +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// With markers, these four bytes stand at every 512th byte of the stream, counted from the first byte of Full
// Operation:
//
//      +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//      |        RESERVED (zero)        |            FPDUPTR            |
//      +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// FPDUPTR is the distance back to the ULPDU_Length field of the FPDU that the marker is in; 0 when the marker stands
// between two FPDUs, and then it belongs to the second. FPDUs and markers are multiples of four bytes, so a marker
// never splits the length field or the CRC: it can stand before the length field, inside the ULPDU and its PAD, or
// between PAD and CRC.
namespace weft::mpa {

inline constexpr size_t kLengthFieldLength = 2;
inline constexpr size_t kCrcLength = 4;
inline constexpr size_t kMarkerLength = 4;
inline constexpr size_t kMarkerInterval = 512;

inline constexpr size_t kMaxUlpduLength = 65535;  // maximum of the ULPDU_Length field
inline constexpr size_t kMinMulpdu = 128;         // section 3: MULPDU is 128 to 64768
inline constexpr size_t kMaxMulpdu = 64768;

constexpr size_t PadLength(size_t ulpdu_length) { return (2 - ulpdu_length) & 3; }

// A whole FPDU without markers.
constexpr size_t FpduLength(size_t ulpdu_length) {
  return kLengthFieldLength + ulpdu_length + PadLength(ulpdu_length) + kCrcLength;
}

// Number of markers inside an FPDU of `length` bytes (without them) whose ULPDU_Length field is at stream position
// `position`, which is not the position of a marker. A marker right after the FPDU belongs to the next one and is not
// counted.
constexpr size_t MarkersInside(uint64_t position, size_t length) {
  const size_t before_first = kMarkerInterval - position % kMarkerInterval;
  if (length <= before_first) return 0;
  constexpr size_t kBetween = kMarkerInterval - kMarkerLength;
  return (length - before_first + kBetween - 1) / kBetween;
}

// The longest FPDU with markers: one in front of it and as many inside as possible.
inline constexpr size_t kMaxMarkedFpduLength =
    kMarkerLength + FpduLength(kMaxUlpduLength) + kMarkerLength * MarkersInside(508, FpduLength(kMaxUlpduLength));

// MULPDU for TCP segments of `emss` bytes of payload: section 4.5, within the bounds of section 3.
constexpr size_t MulpduForSegment(size_t emss, bool markers) {
  size_t overhead = kLengthFieldLength + kCrcLength + emss % 4;
  if (markers) overhead += kMarkerLength * ((emss + kMarkerInterval - 1) / kMarkerInterval);
  return std::clamp(emss > overhead ? emss - overhead : 0, kMinMulpdu, kMaxMulpdu);
}

}  // namespace weft::mpa

#endif  // MPA_FPDU_LAYOUT_H_
