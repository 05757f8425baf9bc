#ifndef DDP_SCTP_CHUNK_H_
#define DDP_SCTP_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/byte_reader.h"
#include "base/result.h"

// The SCTP messages of RFC 5043 section 5, with the control messages that RFC 6581 section 7 adds. Works on bytes only.
namespace weft::ddp::sctp {

// Adaptation layer indication in INIT and INIT ACK (section 5.1).
inline constexpr uint32_t kAdaptationIndication = 0x00000001;

// The peer's indication (section 11.1). With anything but kDdp, this folder must not be used on the association.
enum class Adaptation : uint8_t { kNone, kDdp, kOther };
// nullopt: the peer sent none.
Adaptation CheckAdaptation(std::optional<uint32_t> indication);
const char* ToString(Adaptation adaptation);

// Payload protocol identifiers (section 5.2), in host byte order.
inline constexpr uint32_t kSegmentPpid = 16;
inline constexpr uint32_t kControlPpid = 17;

inline constexpr size_t kSsnLength = 2;            // bytes in front of a DDP segment
inline constexpr size_t kControlHeaderLength = 4;  // bytes in front of private data
// length of IRD and ORD, at the front of the private data of an enhanced message
inline constexpr size_t kMaxPrivateData = 512;
inline constexpr size_t kReadsLength =
    4;  // bytes: IRD and ORD, at the front of the private data of an enhanced message
inline constexpr size_t kLongestSegment = 65535;  // bytes: the longest for llp::UlpduSink

enum class ChunkError : uint8_t {
  kUnknownPpid,
  kTruncated,     // shorter than the DDP-SSN, or than the header of a control message
  kEmptySegment,  // a DDP-SSN with nothing behind it
  kSegmentTooLong,
  kUnknownFunction,
  kPrivateDataTooLong,
  kPrivateDataInTerminate,
  kTruncatedReads,  // enhanced, but the private data is too short for IRD and ORD (RFC 6581 section 9)
};
const char* ToString(ChunkError error);

//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |          DDP-SSN              |   DDP Segment (PPID 16), or   |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+   Function Code (PPID 17)     +
// |                                   and Private Data ...        |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
struct Chunk {
  // Except for kSegment, these are the function codes of section 5.2.3.
  enum class Kind : uint8_t { kSegment = 0, kInitiate = 1, kAccept = 2, kReject = 3, kTerminate = 4 };

  Kind kind = Kind::kSegment;
  uint16_t ssn = 0;
  // For kInitiate, kAccept and kReject: the function code is that of RFC 6581 section 7. The private data of an
  // enhanced Initiate or Accept begins with IRD and ORD (start_up.h).
  bool enhanced = false;
  ByteSpan body;  // the DDP segment, or the private data; points into the message

  uint32_t ppid() const { return kind == Kind::kSegment ? kSegmentPpid : kControlPpid; }
  static Result<Chunk, ChunkError> Parse(uint32_t ppid, ByteSpan message);
  // Writes the header that precedes `body`: kSsnLength or kControlHeaderLength bytes. Returns its length.
  size_t SerializeHeader(MutableByteSpan storage) const;
  std::string ToString() const;
};
const char* ToString(Chunk::Kind kind);

// The longest DDP segment that can be sent if a packet carries `longest_message` bytes without fragmentation. Leaves
// room for the DDP-SSN and for control chunks in the same packet. Never less than 516 (section 9).
size_t MaxSegment(size_t longest_message);

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_CHUNK_H_
