#ifndef SIM_DATAGRAM_HEADER_H_
#define SIM_DATAGRAM_HEADER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/byte_reader.h"
#include "transport/socket_address.h"

namespace weft::sim {

// The header of an unreliable datagram between two Weft ends, in front of the payload: one UDP datagram each,
// big-endian. It carries those contents of InfiniBand's BTH, DETH, ImmDt and GRH (IBTA volume 1, chapters 8 and 9) that
// UDP and IP lack.
//
//    0                   1                   2                   3
//    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//   +-------------------------------+---------------+---------------+
//   |         magic "WU"            |  version = 1  |    opcode     |
//   +---------------+---------------+---------------+---------------+
//   | traffic class |            destination QPN                    |
//   +---------------+-----------------------------------------------+
//   |   hop limit   |              source QPN                       |
//   +---------------+-----------------------------------------------+
//   |                            Q_Key                              |
//   +---------------------------------------------------------------+
//   |               immediate data (0 if there is none)             |
//   +-------------------------------+-------------------------------+
//   |     flags: 1 = solicited      |        payload length         |
//   +-------------------------------+-------------------------------+
struct DatagramHeader {
  static constexpr size_t kLength = 24;
  static constexpr uint16_t kMagic = 0x5755;
  static constexpr uint8_t kVersion = 1;

  enum class Opcode : uint8_t { kSend = 0, kSendImmediate = 1 };

  Opcode opcode = Opcode::kSend;
  bool solicited = false;
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
  uint32_t destination = 0;  // QPN, 24 bits
  uint32_t source = 0;       // QPN, 24 bits
  uint32_t qkey = 0;
  uint32_t immediate = 0;    // as the program has it: network byte order in memory (ibv_send_wr)
  uint16_t length = 0;       // bytes of payload

  // nullopt: another format, or the payload does not have the length in the header. `datagram` is the whole datagram.
  static std::optional<DatagramHeader> Parse(ByteSpan datagram);
  void SerializeTo(std::span<uint8_t, kLength> out) const;
  std::string ToString() const;
  bool operator==(const DatagramHeader&) const = default;
};

// For readers of a capture: the queue pairs of a datagram. Empty: it is not one of Weft's.
std::string DescribeDatagram(ByteSpan datagram);

// The 40 bytes in front of a received datagram's payload: for IPv6 a GRH, for IPv4 20 zeros and an IPv4 header (IBTA
// annex A17). `length`: bytes of payload. All zeros if the addresses are missing or have different families.
using GlobalHeader = std::array<uint8_t, 40>;
GlobalHeader MakeGlobalHeader(const DatagramHeader& header, const transport::SocketAddress& from,
                              const transport::SocketAddress& to);

}  // namespace weft::sim

#endif  // SIM_DATAGRAM_HEADER_H_
