#include "transport/udp_packet.h"

#include <algorithm>

#include "base/byte_writer.h"
#include "base/check.h"
#include "transport/ip_frame.h"

namespace weft::transport {
namespace {

constexpr size_t kUdpBytes = 8;
constexpr uint8_t kUdpProtocol = 17;

}  // namespace

void UdpPacket::AppendTo(std::vector<uint8_t>& out) const {
  WEFT_CHECK(length <= kMostPayload);
  const IpFrame frame(out, from, to, kUdpProtocol, kUdpBytes + length);
  ByteWriter writer(frame.segment());
  writer.U16(from.port());
  writer.U16(to.port());
  writer.U16(static_cast<uint16_t>(kUdpBytes + length));
  writer.U16(0);  // checksum, below
  size_t left = length;
  for (const iovec& piece : payload) {
    const size_t part = std::min(left, piece.iov_len);
    writer.Bytes({static_cast<const uint8_t*>(piece.iov_base), part});
    left -= part;
  }
  const uint16_t checksum = frame.SegmentChecksum();
  ByteWriter(frame.segment().subspan(6, 2)).U16(checksum != 0 ? checksum : 0xffff);  // 0 says that there is none (RFC 768)
}

}  // namespace weft::transport
