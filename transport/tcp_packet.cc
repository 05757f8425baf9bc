#include "transport/tcp_packet.h"

#include "base/byte_writer.h"
#include "base/check.h"
#include "transport/ip_frame.h"

namespace weft::transport {
namespace {

constexpr size_t kTcpBytes = 20;
// In a SYN: maximum segment size, window scale 14 (so that no window ever looks full), and padding.
constexpr uint8_t kSynOptions[] = {2, 4, 0xff, 0xd7, 3, 3, 14, 1};
constexpr uint8_t kTcpProtocol = 6;

}  // namespace

void TcpPacket::AppendTo(std::vector<uint8_t>& out) const {
  WEFT_CHECK(payload.size() <= kMostPayload);
  const ByteSpan options = (flags & kSyn) != 0 ? ByteSpan(kSynOptions) : ByteSpan();
  const IpFrame frame(out, from, to, kTcpProtocol, kTcpBytes + options.size() + payload.size());
  ByteWriter writer(frame.segment());
  writer.U16(from.port());
  writer.U16(to.port());
  writer.U32(sequence);
  writer.U32(acknowledgment);
  writer.U8(static_cast<uint8_t>((kTcpBytes + options.size()) / 4 << 4));
  writer.U8(flags);
  writer.U16(0xffff);  // window
  writer.U16(0);       // checksum, below
  writer.U16(0);       // urgent pointer
  writer.Bytes(options);
  writer.Bytes(payload);
  ByteWriter(frame.segment().subspan(16, 2)).U16(frame.SegmentChecksum());
}

}  // namespace weft::transport
