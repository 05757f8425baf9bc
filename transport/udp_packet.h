#ifndef TRANSPORT_UDP_PACKET_H_
#define TRANSPORT_UDP_PACKET_H_

#include <cstdint>
#include <span>
#include <vector>

#include <sys/uio.h>

#include "transport/socket_address.h"

namespace weft::transport {

// One UDP datagram in a capture; see IpFrame.
struct UdpPacket {
  SocketAddress from, to;  // IpFrame::SameFamily()
  std::span<const iovec> payload;
  size_t length = 0;  // of the payload, at most kMostPayload

  static constexpr size_t kMostPayload = 65535 - 20 - 8;

  // Appends the Ethernet frame.
  void AppendTo(std::vector<uint8_t>& out) const;
};

}  // namespace weft::transport

#endif  // TRANSPORT_UDP_PACKET_H_
