#include "transport/tcp_packet.h"

#include <netinet/in.h>

#include <cstring>

#include "base/byte_writer.h"
#include "base/check.h"

namespace weft::transport {
namespace {

constexpr size_t kEthernetBytes = 14;
constexpr size_t kIpv4Bytes = 20;
constexpr size_t kIpv6Bytes = 40;
constexpr size_t kTcpBytes = 20;
// In a SYN: maximum segment size, window scale 14 (so that no window ever looks full), and padding.
constexpr uint8_t kSynOptions[] = {2, 4, 0xff, 0xd7, 3, 3, 14, 1};
constexpr uint8_t kTcpProtocol = 6;
constexpr uint8_t kHopLimit = 64;

struct Host {
  uint8_t bytes[16];
  size_t length;
  ByteSpan span() const { return {bytes, length}; }
};

Host HostOf(const SocketAddress& address) {
  Host host{};
  if (address.family() == AF_INET) {
    host.length = 4;
    std::memcpy(host.bytes, &reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr, 4);
    return host;
  }
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr;
  host.length = IN6_IS_ADDR_V4MAPPED(&v6) ? 4 : 16;
  std::memcpy(host.bytes, v6.s6_addr + 16 - host.length, host.length);
  return host;
}

// The Internet checksum (RFC 1071), in parts; each but the last of even length.
class Checksum {
 public:
  void Add(ByteSpan bytes) {
    size_t i = 0;
    for (; i + 1 < bytes.size(); i += 2) sum_ += static_cast<uint32_t>(bytes[i] << 8 | bytes[i + 1]);
    if (i < bytes.size()) sum_ += static_cast<uint32_t>(bytes[i] << 8);
  }
  void Add(uint32_t value) { sum_ += (value >> 16) + (value & 0xffff); }
  uint16_t Value() const {
    uint64_t folded = sum_;
    while (folded >> 16 != 0) folded = (folded & 0xffff) + (folded >> 16);
    return static_cast<uint16_t>(~folded);
  }

 private:
  uint64_t sum_ = 0;
};

void PutU16(MutableByteSpan at, uint16_t value) { ByteWriter(at).U16(value); }

// Locally administered, telling the two ends apart; which end is which follows from the ports alone.
void WriteMac(ByteWriter& writer, const SocketAddress& address) {
  writer.U16(0x0200);
  writer.U16(0);
  writer.U16(address.port());
}

void WriteIp(ByteWriter& writer, const Host& from, const Host& to, size_t tcp_length) {
  if (from.length == 16) {
    writer.U32(0x60000000);  // version 6
    writer.U16(static_cast<uint16_t>(tcp_length));
    writer.U8(kTcpProtocol);
    writer.U8(kHopLimit);
  } else {
    writer.U16(0x4500);  // version 4, five words
    writer.U16(static_cast<uint16_t>(kIpv4Bytes + tcp_length));
    writer.U32(0x00004000);  // do not fragment
    writer.U8(kHopLimit);
    writer.U8(kTcpProtocol);
    writer.U16(0);  // checksum, below
  }
  writer.Bytes(from.span());
  writer.Bytes(to.span());
}

}  // namespace

void TcpPacket::AppendTo(std::vector<uint8_t>& out) const {
  WEFT_CHECK(payload.size() <= kMostPayload);
  Host source = HostOf(from), sink = HostOf(to);
  WEFT_CHECK(source.length == sink.length);
  bool is_v6 = source.length == 16;
  ByteSpan options = (flags & kSyn) != 0 ? ByteSpan(kSynOptions) : ByteSpan();
  size_t ip_bytes = is_v6 ? kIpv6Bytes : kIpv4Bytes;
  size_t tcp_length = kTcpBytes + options.size() + payload.size();

  size_t start = out.size();
  out.resize(start + kEthernetBytes + ip_bytes + tcp_length);
  MutableByteSpan frame = MutableByteSpan(out).subspan(start);
  ByteWriter writer(frame);
  WriteMac(writer, to);
  WriteMac(writer, from);
  writer.U16(is_v6 ? 0x86dd : 0x0800);
  WriteIp(writer, source, sink, tcp_length);
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

  MutableByteSpan ip = frame.subspan(kEthernetBytes, ip_bytes), tcp = frame.subspan(kEthernetBytes + ip_bytes);
  if (!is_v6) {
    Checksum header;
    header.Add(ip);
    PutU16(ip.subspan(10, 2), header.Value());
  }
  Checksum segment;  // over the pseudo header (RFC 9293 section 3.1, RFC 8200 section 8.1) and the segment
  segment.Add(source.span());
  segment.Add(sink.span());
  segment.Add(static_cast<uint32_t>(tcp_length));
  segment.Add(uint32_t{kTcpProtocol});
  segment.Add(tcp);
  PutU16(tcp.subspan(16, 2), segment.Value());
}

}  // namespace weft::transport
