#ifndef CM_RSOCKET_WIRE_H_
#define CM_RSOCKET_WIRE_H_

#include <cstdint>
#include <optional>
#include <span>

// The messages of stream rsockets. The protocol is that of rdma-core (librdmacm/docs/rsocket), version 1:
//
// Bytes travel by RDMA Write into the peer's receive buffer. A message of 32 bits announces each Write. On iWARP, which
// has no immediate data, the message is a Send of four bytes. Free room in a receive buffer is announced by writing an
// entry of the peer's target list, again followed by a message.
namespace weft::rsocket {

// Memory that the peer may write. Each host has it in its own byte order; the writer converts to the reader's.
struct Target {
  uint64_t address = 0;
  uint32_t key = 0;  // rkey
  uint32_t length = 0;
};
static_assert(sizeof(Target) == 16);

// A buffer of riomap(). riowrite() names it by `offset`.
struct IoMapEntry {
  uint64_t offset = 0;
  Target target;
};
static_assert(sizeof(IoMapEntry) == 24);

inline constexpr uint32_t kTargetListSize = 2;  // entries; the I/O map follows them

// The private data of the connection request and reply:
//
//   0        1        2                 4                          7
//   +--------+--------+-----------------+--------------------------+----------+
//   | version| flags  | credits         | reserved                 | map size |
//   +--------+--------+-----------------+--------------------------+----------+
//   | target list: address (8), key (4), entries (4)                          |
//   +-------------------------------------------------------------------------+
//   | first half of the receive buffer: address (8), key (4), bytes (4)       |
//   +-------------------------------------------------------------------------+
//
// all in network byte order. The target list's address is followed by the I/O map if kMapFlag is set.
struct ConnectData {
  static constexpr size_t kSize = 40;
  static constexpr uint8_t kVersion = 1;
  static constexpr uint8_t kBigEndianFlag = 1;
  static constexpr uint8_t kMapFlag = 2;

  bool big_endian = false;    // of the sender's memory
  uint16_t credits = 0;       // messages that it can receive
  uint16_t map_entries = 0;   // size of its I/O map; scaled on the wire, see ScaledMapEntries
  Target target_list;         // length: entries
  Target buffer;

  // nullopt: too short, or another version.
  static std::optional<ConnectData> Parse(std::span<const uint8_t> bytes);
  void Serialize(std::span<uint8_t, kSize> bytes) const;
};

// The sizes of an I/O map that one byte can express: 0 to 128, then multiples of 256. Returns the largest not above
// `entries`.
uint16_t ScaledMapEntries(uint32_t entries);

// The upper three bits of a message, and the meaning of the lower 29.
enum class MessageType : uint8_t {
  kData = 0,     // bytes were written behind those announced before
  kWrite = 2,    // never on the wire
  kCredits = 4,  // how many data messages may be sent, modulo 2^16; the target list may have a new entry
  kMap = 6,      // index of the new entry of the I/O map
  kControl = 7,  // see Control
};

enum class Control : uint32_t {
  kDisconnect = 0,  // nothing more will be sent or received
  kKeepAlive = 1,
  kShutdown = 2,    // nothing more will be sent
};

struct Message {
  static constexpr size_t kSize = 4;

  MessageType type{};
  uint32_t value = 0;

  // A Send carries the message in the sender's byte order, immediate data in network byte order. `raw` is in the host's
  // order.
  static Message Parse(uint32_t raw) { return {static_cast<MessageType>(raw >> 29), raw & 0x1fffffff}; }
  uint32_t Serialize() const { return static_cast<uint32_t>(type) << 29 | (value & 0x1fffffff); }
};

// Converts to and from the byte order of the peer's memory; unchanged if `swap` is false.
Target Swapped(const Target& target, bool swap);
IoMapEntry Swapped(const IoMapEntry& entry, bool swap);
uint32_t Swapped(uint32_t raw, bool swap);

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_WIRE_H_
