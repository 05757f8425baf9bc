#ifndef IMPI_WIRE_PACKET_H_
#define IMPI_WIRE_PACKET_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "base/result.h"

// What the agents of two hosts of an IMPI job send each other (IMPI 0.0, chapter 3): headers of 128 bytes, big-endian, and behind those of data packets the
// user's data in external32.
namespace weft::impi {

// 16 bytes. An IPv4 address stands in the last four, behind zeros or, as IPv6 maps it, behind ::ffff.
using HostId = std::array<uint8_t, 16>;
// Of `address`, in network byte order; in the first form, which LAM uses.
HostId HostIdOfIpv4(uint32_t address);
// The same for both forms of an IPv4 address: the first one. Others stay as they are.
HostId Canonical(const HostId& host);
// "192.0.2.7", "2001:db8::7".
std::string TextOf(const HostId& host);

// A process of the job, by its host and a number that is its own there.
struct ProcessName {
  HostId host{};
  int64_t number = 0;
  auto operator<=>(const ProcessName&) const = default;
};
std::string TextOf(const ProcessName& process);  // "192.0.2.7/4711"

enum class PacketType : uint32_t {
  kData = 0,
  kDataSync = 1,     // its receiver answers with kSyncAck when a receive matches the message
  kProtocolAck = 2,  // flow control: the destination took as many packets as was agreed (IMPI_Pk_ackmark)
  kSyncAck = 3,
  kCancel = 4,
  kCancelYes = 5,
  kCancelNo = 6,
  kFini = 7,  // of an agent: its processes send nothing more
};
inline constexpr PacketType kLastPacketType = PacketType::kFini;
const char* NameOf(PacketType type);  // "DATA"
// Whether packets of this type count for flow control: all but PROTOACK (3.6) and FINI, which is of no process (3.8).
constexpr bool Counts(PacketType type) { return type != PacketType::kProtocolAck && type != PacketType::kFini; }

// What the hosts agreed on when the job started.
struct PacketLimits {
  uint32_t data_length = 0;  // bytes, of one packet: the least IMPI_C_DATALEN
  int32_t tag = 0;           // the least IMPI_C_TAGUB
};

// A header. Which of the fields a type has is in table 3.1; the others are written as 0 and not looked at.
struct Packet {
  static constexpr size_t kSize = 128;  // bytes

  PacketType type = PacketType::kData;
  uint32_t data_length = 0;  // bytes that follow the header
  ProcessName source, destination;
  uint64_t source_request = 0, destination_request = 0;
  // Of data packets.
  uint64_t message_length = 0;  // bytes, of all packets of the message
  int32_t source_rank = 0;      // in the communicator
  int32_t tag = 0;
  uint64_t context = 0;
  uint64_t sequence = 0, count = 0, datatype = 0;  // for tools: a number of the message, MPI's count, the sender's handle

  bool has_data() const { return type == PacketType::kData || type == PacketType::kDataSync; }
  void Serialize(std::span<uint8_t, kSize> into) const;
  // The names are canonical afterwards, so they compare. An answer goes to a name as its client announced it (impi/job/job.h), not as it stands here.
  // Why not: the field, its value and the limit. LAM gives packets without data a length and -1 as tag and count: of these fields are not looked at.
  static Result<Packet, std::string> Parse(std::span<const uint8_t, kSize> bytes, const PacketLimits& limits);
  bool operator==(const Packet&) const = default;
};

}  // namespace weft::impi

#endif  // IMPI_WIRE_PACKET_H_
