#include "transport/sctp_packet.h"

#include <sys/uio.h>

#include "base/byte_writer.h"
#include "base/check.h"
#include "transport/ip_frame.h"
#include "transport/udp_packet.h"

namespace weft::transport {
namespace {

constexpr uint8_t kSctpProtocol = 132;

}  // namespace

void SctpPacket::AppendTo(std::vector<uint8_t>& out) const {
  WEFT_CHECK(bytes.size() <= kMost);
  if (to.port() != 0) {
    const iovec piece{const_cast<uint8_t*>(bytes.data()), bytes.size()};
    return UdpPacket{from, to, {&piece, 1}, bytes.size()}.AppendTo(out);
  }
  const IpFrame frame(out, from, to, kSctpProtocol, bytes.size());
  ByteWriter(frame.segment()).Bytes(bytes);
}

}  // namespace weft::transport
