#ifndef CM_RSOCKET_DATAGRAM_WIRE_H_
#define CM_RSOCKET_DATAGRAM_WIRE_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

// The messages of datagram rsockets. The protocol is that of rdma-core (librdmacm/docs/rsocket):
//
// A datagram travels on UD queue pairs, behind a header with the address of the sending socket. To learn the queue pair
// of an address, a socket sends the first datagrams over UDP, behind another header with the sender's queue pair. The
// receiver answers with its own queue pair, in a header alone.
namespace weft::rsocket {

using Bytes = std::span<const uint8_t>;

// On a queue pair:
//
//   0         1         2                 4                   8
//   +---------+---------+-----------------+-------------------+
//   | version | length  | port            | IPv4 address      |
//   +---------+---------+-----------------+-------------------+
//
// in network byte order; the version is IP's, 4 or 6. With 6 the flow label and 16 bytes of address follow the port.
struct DatagramHeader {
  static constexpr size_t kMostLength = 24;

  sockaddr_storage from{};  // of either address family

  // Returns the length of the header.
  size_t Serialize(std::span<uint8_t, kMostLength> out) const;
  // Sets `*length` to the length of the header; the rest is the program's data. nullopt: not such a header.
  static std::optional<DatagramHeader> Parse(Bytes datagram, size_t* length);
};

// Over UDP:
//
//   0         1         2         3         4
//   +---------+---------+---------+---------+
//   | tag: 0x55555555                       |
//   +---------+---------+---------+---------+
//   | version | op      | length  | reserved|
//   +---------+---------+---------+---------+
//   | QPN of the sender                     |
//   +---------+---------+---------+---------+
//   | address it is sent to (4 or 16 bytes) |
//   +---------+---------+---------+---------+
struct LookupHeader {
  static constexpr size_t kMostLength = 28;
  static constexpr uint32_t kTag = 0x55555555;
  enum class Op : uint8_t { kData = 0, kControl = 7 };  // followed by a datagram; without one

  Op op = Op::kData;
  uint32_t queue_pair = 0;
  sockaddr_storage to{};  // without a port

  size_t Serialize(std::span<uint8_t, kMostLength> out) const;
  static std::optional<LookupHeader> Parse(Bytes datagram, size_t* length);
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_DATAGRAM_WIRE_H_
