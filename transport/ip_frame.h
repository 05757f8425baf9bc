#ifndef TRANSPORT_IP_FRAME_H_
#define TRANSPORT_IP_FRAME_H_

#include <cstdint>
#include <vector>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "transport/socket_address.h"

namespace weft::transport {

// The frame around a TCP or UDP segment in a capture. It is synthetic, with valid lengths and checksums, because a
// socket does not tell what was on the wire.
class IpFrame {
 public:
  // Whether both are of one family. An IPv4-mapped address counts and is shown as IPv4.
  static bool SameFamily(const SocketAddress& from, const SocketAddress& to);

  // Appends Ethernet and IP headers and room for a segment of `length` bytes (at most kMostSegment) to `out`. `out`
  // must not change while the frame is used. Requires SameFamily() of the addresses.
  IpFrame(std::vector<uint8_t>& out, const SocketAddress& from, const SocketAddress& to, uint8_t protocol, size_t length);

  static constexpr size_t kMostSegment = 65535 - 20;

  MutableByteSpan segment() const { return segment_; }
  // The checksum of the pseudo header (RFC 9293 section 3.1, RFC 8200 section 8.1) and the current bytes of the
  // segment.
  uint16_t SegmentChecksum() const;

 private:
  ByteSpan addresses_;  // both addresses in the IP header
  MutableByteSpan segment_;
  uint8_t protocol_;
};

}  // namespace weft::transport

#endif  // TRANSPORT_IP_FRAME_H_
