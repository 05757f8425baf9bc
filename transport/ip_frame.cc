#include "transport/ip_frame.h"

#include <netinet/in.h>

#include <cstring>

#include "base/check.h"

namespace weft::transport {
namespace {

constexpr size_t kEthernetBytes = 14;
constexpr size_t kIpv4Bytes = 20;
constexpr size_t kIpv6Bytes = 40;
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

// Locally administered, telling the two ends apart; which end is which follows from the ports alone.
void WriteMac(ByteWriter& writer, const SocketAddress& address) {
  writer.U16(0x0200);
  writer.U16(0);
  writer.U16(address.port());
}

void WriteIp(ByteWriter& writer, const Host& from, const Host& to, uint8_t protocol, size_t length) {
  if (from.length == 16) {
    writer.U32(0x60000000);  // version 6
    writer.U16(static_cast<uint16_t>(length));
    writer.U8(protocol);
    writer.U8(kHopLimit);
  } else {
    writer.U16(0x4500);  // version 4, five words
    writer.U16(static_cast<uint16_t>(kIpv4Bytes + length));
    writer.U32(0x00004000);  // do not fragment
    writer.U8(kHopLimit);
    writer.U8(protocol);
    writer.U16(0);  // checksum, below
  }
  writer.Bytes(from.span());
  writer.Bytes(to.span());
}

}  // namespace

bool IpFrame::SameFamily(const SocketAddress& from, const SocketAddress& to) {
  return from.family() != 0 && to.family() != 0 && HostOf(from).length == HostOf(to).length;
}

IpFrame::IpFrame(std::vector<uint8_t>& out, const SocketAddress& from, const SocketAddress& to, uint8_t protocol, size_t length)
    : protocol_(protocol) {
  WEFT_CHECK(length <= kMostSegment);
  const Host source = HostOf(from), sink = HostOf(to);
  WEFT_CHECK(source.length == sink.length);
  const bool is_v6 = source.length == 16;
  const size_t ip_bytes = is_v6 ? kIpv6Bytes : kIpv4Bytes;
  const size_t start = out.size();
  out.resize(start + kEthernetBytes + ip_bytes + length);
  const MutableByteSpan frame = MutableByteSpan(out).subspan(start);
  ByteWriter writer(frame);
  WriteMac(writer, to);
  WriteMac(writer, from);
  writer.U16(is_v6 ? 0x86dd : 0x0800);
  WriteIp(writer, source, sink, protocol, length);
  const MutableByteSpan ip = frame.subspan(kEthernetBytes, ip_bytes);
  if (!is_v6) {
    Checksum header;
    header.Add(ip);
    ByteWriter(ip.subspan(10, 2)).U16(header.Value());
  }
  addresses_ = ip.subspan(ip_bytes - 2 * source.length);
  segment_ = frame.subspan(kEthernetBytes + ip_bytes);
}

uint16_t IpFrame::SegmentChecksum() const {
  Checksum checksum;
  checksum.Add(addresses_);
  checksum.Add(static_cast<uint32_t>(segment_.size()));
  checksum.Add(uint32_t{protocol_});
  checksum.Add(segment_);
  return checksum.Value();
}

}  // namespace weft::transport
