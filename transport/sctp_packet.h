#ifndef TRANSPORT_SCTP_PACKET_H_
#define TRANSPORT_SCTP_PACKET_H_

#include <cstdint>
#include <vector>

#include "base/byte_reader.h"
#include "transport/socket_address.h"

namespace weft::transport {

// What a capture shows of one packet of SCTP; see IpFrame.
struct SctpPacket {
  SocketAddress from, to;  // IpFrame::SameFamily(). Ports: those of UDP that carries it (RFC 6951); 0: it is in IP
  ByteSpan bytes;          // from the common header on, with its checksum, at most kMost

  static constexpr size_t kMost = 65535 - 20 - 8;

  // Appends the Ethernet frame.
  void AppendTo(std::vector<uint8_t>& out) const;
};

}  // namespace weft::transport

#endif  // TRANSPORT_SCTP_PACKET_H_
