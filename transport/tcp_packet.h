#ifndef TRANSPORT_TCP_PACKET_H_
#define TRANSPORT_TCP_PACKET_H_

#include <cstdint>
#include <vector>

#include "base/byte_reader.h"
#include "transport/socket_address.h"

namespace weft::transport {

// One TCP segment in a capture. The frame around it is synthetic, with valid lengths and checksums, because a socket
// does not tell what was on the wire.
struct TcpPacket {
  enum Flag : uint8_t { kFin = 0x01, kSyn = 0x02, kRst = 0x04, kPush = 0x08, kAck = 0x10 };

  // Largest payload that fits an IPv4 or IPv6 packet with its headers.
  static constexpr size_t kMostPayload = 60 * 1024;

  SocketAddress from, to;  // of one family, or IPv4-mapped, which is shown as IPv4
  uint32_t sequence = 0;
  uint32_t acknowledgment = 0;
  uint8_t flags = 0;
  ByteSpan payload;  // at most kMostPayload

  // Appends the Ethernet frame.
  void AppendTo(std::vector<uint8_t>& out) const;
};

}  // namespace weft::transport

#endif  // TRANSPORT_TCP_PACKET_H_
