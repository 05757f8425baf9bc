#ifndef IMPI_MESSAGE_TYPES_H_
#define IMPI_MESSAGE_TYPES_H_

#include <array>
#include <cstdint>
#include <string>

#include "base/strong_id.h"
#include "impi/wire/packet.h"

// What the parts of the message protocol tell each other and their owner.
namespace weft::impi {

using PeerId = StrongId<struct PeerIdTag, uint32_t>;        // a process of another client: the order in which it was added
using SendId = StrongId<struct SendIdTag, uint64_t>;        // of this process; on the wire pk_srqid
using MessageId = StrongId<struct MessageIdTag, uint64_t>;  // that comes to this process; on the wire pk_drqid

// Which program the peer's client runs.
enum class Peer : uint8_t {
  kStandard,  // keeps to the specification
  kLam,       // LAM/MPI 7.1.4: departures.h
};

// What the header of a data packet says about the whole message.
struct Envelope {
  uint64_t context = 0;
  int32_t rank = 0;     // of the sender, in the communicator
  int32_t tag = 0;      // 0 to PacketLimits::tag
  uint64_t length = 0;  // bytes, in external32
  uint64_t count = 0, datatype = 0;  // for tools
  bool operator==(const Envelope&) const = default;
};

// A packet to send: the header and, behind it, bytes [offset, offset + length) of the message `send`.
struct Outgoing {
  std::array<uint8_t, Packet::kSize> header;
  PacketType type = PacketType::kData;
  SendId send;          // of data packets and of kCancel
  uint64_t offset = 0;  // bytes
  uint32_t length = 0;  // bytes
  bool last = false;    // no later packet takes bytes of the message
};

// What a packet means for the owner.
struct Event {
  enum class Kind : uint8_t {
    kNone,          // nothing
    kMessage,       // `message` begins; no receive has it yet (Endpoint::Match)
    kPart,          // more of `message`, which a receive has
    kDropped,       // `length` bytes follow the header that nobody wants
    kWithdrawn,     // the sender has cancelled `message`: its number and the bytes that are stored for it are void
    kSynchronized,  // a receive of the peer has matched `send`
    kCancelled,     // `send` was cancelled
    kNotCancelled,  // it was not, and completes as if nobody had asked
  };
  Kind kind = Kind::kNone;
  PeerId peer;
  SendId send;
  MessageId message;
  // Of data packets: the bytes behind the header. The first `keep` of them belong to [offset, offset + keep) of the message, the others are cut off, since
  // the receive has no room for them.
  uint64_t offset = 0;
  uint32_t length = 0, keep = 0;
  bool last = false;  // with these bytes the message is whole
};

// What is wrong with a packet: "pk_drqid", "is 5, which ...".
struct Complaint {
  const char* field;
  std::string why;
};

}  // namespace weft::impi

#endif  // IMPI_MESSAGE_TYPES_H_
