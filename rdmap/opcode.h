#ifndef RDMAP_OPCODE_H_
#define RDMAP_OPCODE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ddp/header.h"
#include "rdmap/delivery.h"
#include "rdmap/request.h"

namespace weft::rdmap {

inline constexpr uint8_t kRdmapVersion = 1;

// RFC 5040 section 3.1: the untagged queues.
inline constexpr uint32_t kSendQueue = 0;
inline constexpr uint32_t kReadRequestQueue = 1;
inline constexpr uint32_t kTerminateQueue = 2;
inline constexpr uint32_t kQueueCount = 3;  // of a plain stream
inline constexpr uint32_t kAtomicResponseQueue = 3;  // RFC 7306 section 4.1, of streams with atomics
inline constexpr uint32_t kDeliveryQueue = 4;        // Weft's own, of extended streams
inline constexpr uint32_t kExtendedQueueCount = 5;

inline constexpr size_t kReadRequestLength = 28;  // RDMAP header of an RDMA Read Request, section 4.4

//  0 1 2 3 4 5 6 7
// +-+-+-+-+-+-+-+-+
// | RV|Rsv| Opcode|   the RDMAP Control Field, RFC 5040 section 4.1: the first byte that DDP reserves for its ULP
// +-+-+-+-+-+-+-+-+
struct ControlByte {
  uint8_t version = kRdmapVersion;  // 2 bits
  uint8_t opcode = 0;               // 4 bits, any value
  // Rsv. A plain stream ignores it, as the RFC requires. On an extended stream, its last bit means for a Send that
  // RsvdULP[8:39] is immediate data, and for a Write that Immediate Data follows. On a reliable stream, its first bit
  // means that the requester waits for an acknowledgement (like AckReq of InfiniBand's transport header).
  bool immediate = false;
  bool acknowledge = false;

  static constexpr ControlByte Parse(uint8_t byte) {
    return {static_cast<uint8_t>(byte >> 6), static_cast<uint8_t>(byte & 0x0f), (byte & 0x10) != 0, (byte & 0x20) != 0};
  }
  constexpr uint8_t Serialize() const {
    return static_cast<uint8_t>(version << 6 | (acknowledge ? 0x20 : 0) | (immediate ? 0x10 : 0) | (opcode & 0x0f));
  }
};

constexpr uint8_t ControlByteOf(Opcode opcode, bool immediate = false, bool acknowledge = false) {
  return ControlByte{kRdmapVersion, static_cast<uint8_t>(opcode), immediate, acknowledge}.Serialize();
}

// How a receiver handles a message of this kind.
enum class Handler : uint8_t {
  kWrite,
  kReadResponse,
  kSend,
  kReadRequest,
  kTerminate,
  kImmediate,
  kAtomicRequest,
  kAtomicResponse,
  kDelivery,
};

// When a peer may send the message.
enum class Legal : uint8_t {
  kAlways,
  kWhileReadOutstanding,  // only as the answer to an RDMA Read Request of ours
};

// One row of RFC 5040 figures 4 and 5, or of RFC 7306 figures 2 and 3.
struct OpcodeInfo {
  const char* name = nullptr;
  bool tagged = false;
  uint32_t queue = 0;              // untagged: QN
  size_t header_length = 0;        // DDP header
  size_t rdmap_header_length = 0;  // maximum length of the header behind the DDP header
  bool solicited = false;
  bool invalidates = false;  // RsvdULP[8:39] is the Invalidate STag
  Handler handler = Handler::kWrite;
  Legal legal = Legal::kAlways;
  Streams streams = Streams::kAll;  // where it may be
  bool request = true;    // a request to the peer: extended streams number it (rdmap/delivery.h)
};

// nullptr: the opcode is reserved.
const OpcodeInfo* FindOpcode(uint8_t opcode);
inline const OpcodeInfo* FindOpcode(Opcode opcode) { return FindOpcode(static_cast<uint8_t>(opcode)); }

}  // namespace weft::rdmap

#endif  // RDMAP_OPCODE_H_
