#ifndef RDMAP_OPCODE_H_
#define RDMAP_OPCODE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ddp/header.h"
#include "rdmap/request.h"

namespace weft::rdmap {

inline constexpr uint8_t kRdmapVersion = 1;

// RFC 5040 section 3.1: the untagged queues.
inline constexpr uint32_t kSendQueue = 0;
inline constexpr uint32_t kReadRequestQueue = 1;
inline constexpr uint32_t kTerminateQueue = 2;
inline constexpr uint32_t kQueueCount = 3;  // of a plain stream
// Extended streams: RFC 7306 section 4.1, and Weft's own.
inline constexpr uint32_t kAtomicResponseQueue = 3;
inline constexpr uint32_t kDeliveryQueue = 4;
inline constexpr uint32_t kExtendedQueueCount = 5;

inline constexpr size_t kReadRequestLength = 28;  // RDMAP header of an RDMA Read Request, section 4.4

//  0 1 2 3 4 5 6 7
// +-+-+-+-+-+-+-+-+
// | RV|Rsv| Opcode|   the RDMAP Control Field, RFC 5040 section 4.1: the first byte that DDP reserves for its ULP
// +-+-+-+-+-+-+-+-+
struct ControlByte {
  uint8_t version = kRdmapVersion;  // 2 bits
  uint8_t opcode = 0;               // 4 bits, any value
  // Rsv, which a plain stream ignores, as the RFC asks. On an extended one its last bit says of a Send that RsvdULP[8:39] is
  // immediate data and of a Write that Immediate Data follow it, and its first bit, on a reliable one, of a request whose requester waits until the peer acknowledges it (AckReq of
  // InfiniBand's transport header).
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

// What a receiver does with a message of this kind.
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

// When a peer may send it.
enum class Legal : uint8_t {
  kAlways,
  kWhileReadOutstanding,  // only in answer to an RDMA Read Request of ours
};

// One row of RFC 5040 figures 4 and 5, or of RFC 7306 figures 2 and 3.
struct OpcodeInfo {
  const char* name = nullptr;
  bool tagged = false;
  uint32_t queue = 0;              // untagged: QN
  size_t header_length = 0;        // DDP header
  size_t rdmap_header_length = 0;  // behind it, at most
  bool solicited = false;
  bool invalidates = false;  // RsvdULP[8:39] is the Invalidate STag
  Handler handler = Handler::kWrite;
  Legal legal = Legal::kAlways;
  bool extended = false;  // on extended streams only
  bool request = true;    // asks the peer for something: counted by extended streams (rdmap/delivery.h)
};

// nullptr: reserved.
const OpcodeInfo* FindOpcode(uint8_t opcode);
inline const OpcodeInfo* FindOpcode(Opcode opcode) { return FindOpcode(static_cast<uint8_t>(opcode)); }

}  // namespace weft::rdmap

#endif  // RDMAP_OPCODE_H_
