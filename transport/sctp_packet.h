#ifndef TRANSPORT_SCTP_PACKET_H_
#define TRANSPORT_SCTP_PACKET_H_

#include <cstdint>
#include <vector>

#include "base/byte_reader.h"
#include "transport/socket_address.h"

namespace weft::transport {

// One SCTP packet in a capture; see IpFrame.
struct SctpPacket {
  SocketAddress from, to;  // IpFrame::SameFamily(). Ports of the UDP that carries it (RFC 6951); 0: directly over IP
  ByteSpan bytes;          // from the common header on, with its checksum, at most kMost

  static constexpr size_t kMost = 65535 - 20 - 8;

  // Appends the Ethernet frame.
  void AppendTo(std::vector<uint8_t>& out) const;
};

}  // namespace weft::transport

#endif  // TRANSPORT_SCTP_PACKET_H_
