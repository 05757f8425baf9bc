#ifndef MPI_HYBRID_P2P_ENGINE_WIRE_H_
#define MPI_HYBRID_P2P_ENGINE_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "mpi_hybrid/p2p/engine/little_endian.h"

namespace weft::mpi {

// The data on a connection between two ranks: a greeting (greeting.h), then frames. Little-endian.

enum class FrameKind : uint8_t {
  kEager = 1,      // a message with its data
  kRequest = 2,    // rendezvous: announces a message of `length` bytes (RTS)
  kClear = 3,      // rendezvous: asks for `length` bytes of it (CTS)
  kData = 4,       // rendezvous: the next `length` bytes
  kMatched = 5,    // the synchronous eager message `send_id` was matched
  kCredit = 6,     // only returns credit
  kGoodbye = 7,    // the sender is in MPI_Finalize: no message follows, and the end of the stream is then in order
  kCancel = 8,     // the sender of `send_id` wants to cancel it
  kCancelled = 9,  // it is cancelled; kFlagRefused: too late
  kRevoked = 10,   // `send_id` will not be received: its communicator was revoked
  kNote = 11,      // `length` bytes for the library itself, outside of all communicators
  kFetched = 12,   // the receiver has copied the data of `send_id` from the address in the request (Link::Offer)
};

constexpr uint8_t kFlagSynchronous = 1;  // kEager: answer with kMatched
constexpr uint8_t kFlagRefused = 2;      // kCancelled
constexpr uint8_t kFlagExcuse = 4;  // kEager, kRequest: replaces a message that a death prevents (SendMode::kExcuse)
constexpr uint8_t kFlagExternal = 8;  // kEager, kRequest: the data are in external32 (p2p/impi)
constexpr uint8_t kUnusualData = kFlagExcuse | kFlagExternal;

//  0        1        2                 4                           8
//  +--------+--------+-----------------+---------------------------+
//  | kind   | flags  | 0               | credit given back (bytes) |
//  +--------+--------+-----------------+---------------------------+
//  | context                           | tag                       |
//  +-----------------------------------+---------------------------+
//  | source rank in the communicator   | send_id                   |
//  +-----------------------------------+---------------------------+
//  | receive_id                        | number                    |
//  +-----------------------------------+---------------------------+
//  | length                                                        |
//  +---------------------------------------------------------------+
//
// The number is 0 if one stream carries all frames. With several streams it is the number of a message (kEager,
// kRequest) in its group of contexts (arrivals.h), and the length of kGoodbye is the number of frames before it.
struct FrameHeader {
  static constexpr size_t kLength = 40;
  // No message is longer; a larger value is an error.
  static constexpr uint64_t kMostLength = uint64_t{1} << 62;

  FrameKind kind = FrameKind::kEager;
  uint8_t flags = 0;
  uint32_t credit = 0;
  uint32_t context = 0;
  int32_t tag = 0;
  int32_t source = 0;
  uint32_t send_id = 0;
  uint32_t receive_id = 0;
  uint32_t number = 0;
  uint64_t length = 0;

  // Whether data follows the header.
  bool has_body() const { return kind == FrameKind::kEager || kind == FrameKind::kData || kind == FrameKind::kNote; }
  static bool IsMessage(FrameKind kind) { return kind == FrameKind::kEager || kind == FrameKind::kRequest; }

  // nullopt: not a frame (unknown kind or flag, reserved field not 0, negative source or tag, length out of range, or a
  // number although frames are not `numbered`).
  static std::optional<FrameHeader> Parse(std::span<const uint8_t, kLength> bytes, bool numbered = false);
  void SerializeTo(std::span<uint8_t, kLength> bytes) const {
    uint8_t* const at = bytes.data();
    Store32(at, static_cast<uint32_t>(kind) | static_cast<uint32_t>(flags) << 8);
    Store32(at + 4, credit);
    Store32(at + 8, context);
    Store32(at + 12, static_cast<uint32_t>(tag));
    Store32(at + 16, static_cast<uint32_t>(source));
    Store32(at + 20, send_id);
    Store32(at + 24, receive_id);
    Store32(at + 28, number);
    Store64(at + 32, length);
  }
  static uint32_t CreditOf(std::span<const uint8_t, kLength> bytes);
  static uint32_t ContextOf(std::span<const uint8_t, kLength> bytes);
  static void SetNumber(std::span<uint8_t, kLength> bytes, uint32_t number);
  static void SetLength(std::span<uint8_t, kLength> bytes, uint64_t length);
};

// The fields that a receive needs from the header of an eager message without flags, the most frequent one.
struct EagerHeader {
  uint32_t credit, context;
  int32_t tag, source;
  uint64_t length;

  // False: it is not such a header, or FrameHeader::Parse would reject it.
  bool Parse(std::span<const uint8_t, FrameHeader::kLength> bytes) {
    const uint8_t* const at = bytes.data();
    credit = Load32(at + 4);
    context = Load32(at + 8);
    tag = static_cast<int32_t>(Load32(at + 12));
    source = static_cast<int32_t>(Load32(at + 16));
    length = Load64(at + 32);
    return Load32(at) == static_cast<uint32_t>(FrameKind::kEager) && (tag | source) >= 0 && Load32(at + 28) == 0 && length <= FrameHeader::kMostLength;
  }
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_WIRE_H_
