#ifndef TRANSPORT_IP_FRAME_H_
#define TRANSPORT_IP_FRAME_H_

#include <cstdint>
#include <vector>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "transport/socket_address.h"

namespace weft::transport {

// The frame around a segment of TCP or UDP in a capture. It is made up, with valid lengths and checksums, because a socket does not
// tell what was on the wire.
class IpFrame {
 public:
  // Addresses of one family, or IPv4-mapped, which is shown as IPv4.
  static bool SameFamily(const SocketAddress& from, const SocketAddress& to);

  // Appends Ethernet and IP headers and room for a segment of `length` bytes (at most kMostSegment) to `out`, which must not change while
  // this is used. The addresses are of SameFamily().
  IpFrame(std::vector<uint8_t>& out, const SocketAddress& from, const SocketAddress& to, uint8_t protocol, size_t length);

  static constexpr size_t kMostSegment = 65535 - 20;

  MutableByteSpan segment() const { return segment_; }
  // Of the pseudo header (RFC 9293 section 3.1, RFC 8200 section 8.1) and the segment as it is now.
  uint16_t SegmentChecksum() const;

 private:
  ByteSpan addresses_;  // of the IP header, both
  MutableByteSpan segment_;
  uint8_t protocol_;
};

}  // namespace weft::transport

#endif  // TRANSPORT_IP_FRAME_H_
