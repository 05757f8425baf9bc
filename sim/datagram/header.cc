#include "sim/datagram/header.h"

#include <netinet/in.h>

#include <cstring>

#include "base/byte_writer.h"
#include "base/log.h"

namespace weft::sim {
namespace {

constexpr uint16_t kSolicited = 1;
constexpr uint8_t kProtocolUdp = 17;  // as RoCE v2's header says
// What RoCE v2 carries between IP and the payload: UDP, BTH, DETH; behind it the ICRC.
constexpr uint16_t kRoceOverhead = 8 + 12 + 8 + 4;

uint16_t InternetChecksum(ByteSpan bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) sum += static_cast<uint32_t>(bytes[i] << 8 | bytes[i + 1]);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

void WriteIpv4(const DatagramHeader& header, const sockaddr_in& from, const sockaddr_in& to, MutableByteSpan out) {
  ByteWriter writer(out);
  writer.U8(0x45);
  writer.U8(header.traffic_class);
  writer.U16(static_cast<uint16_t>(out.size() + kRoceOverhead + header.length));
  writer.U16(0);
  writer.U16(0x4000);  // may not be fragmented
  writer.U8(header.hop_limit);
  writer.U8(kProtocolUdp);
  writer.U16(0);
  writer.U32(ntohl(from.sin_addr.s_addr));
  writer.U32(ntohl(to.sin_addr.s_addr));
  const uint16_t checksum = InternetChecksum(out);
  out[10] = static_cast<uint8_t>(checksum >> 8);
  out[11] = static_cast<uint8_t>(checksum);
}

void WriteIpv6(const DatagramHeader& header, const sockaddr_in6& from, const sockaddr_in6& to, MutableByteSpan out) {
  ByteWriter writer(out);
  writer.U32(6u << 28 | static_cast<uint32_t>(header.traffic_class) << 20);
  writer.U16(static_cast<uint16_t>(kRoceOverhead + header.length));
  writer.U8(kProtocolUdp);
  writer.U8(header.hop_limit);
  writer.Bytes(from.sin6_addr.s6_addr);
  writer.Bytes(to.sin6_addr.s6_addr);
}

}  // namespace

std::string DescribeDatagram(ByteSpan datagram) {
  if (datagram.size() < DatagramHeader::kLength) return {};
  ByteReader reader(datagram);
  if (reader.U16() != DatagramHeader::kMagic) return {};
  reader.U16();
  const uint32_t destination = reader.U32() & 0xffffff, source = reader.U32() & 0xffffff;
  return Format("Weft: datagram of queue pair 0x%x to queue pair 0x%x", source, destination);
}

std::optional<DatagramHeader> DatagramHeader::Parse(ByteSpan datagram) {
  if (datagram.size() < kLength) return std::nullopt;
  ByteReader reader(datagram);
  if (reader.U16() != kMagic || reader.U8() != kVersion) return std::nullopt;
  DatagramHeader header;
  const uint8_t opcode = reader.U8();
  if (opcode > static_cast<uint8_t>(Opcode::kSendImmediate)) return std::nullopt;
  header.opcode = static_cast<Opcode>(opcode);
  const uint32_t destination = reader.U32(), source = reader.U32();
  header.traffic_class = static_cast<uint8_t>(destination >> 24);
  header.destination = destination & 0xffffff;
  header.hop_limit = static_cast<uint8_t>(source >> 24);
  header.source = source & 0xffffff;
  header.qkey = reader.U32();
  const ByteSpan immediate = reader.Bytes(sizeof header.immediate);
  std::memcpy(&header.immediate, immediate.data(), immediate.size());
  const uint16_t flags = reader.U16();
  if ((flags & ~kSolicited) != 0) return std::nullopt;
  header.solicited = (flags & kSolicited) != 0;
  header.length = reader.U16();
  if (header.length != reader.remaining()) return std::nullopt;
  return header;
}

void DatagramHeader::SerializeTo(std::span<uint8_t, kLength> out) const {
  ByteWriter writer(out);
  writer.U16(kMagic);
  writer.U8(kVersion);
  writer.U8(static_cast<uint8_t>(opcode));
  writer.U32(static_cast<uint32_t>(traffic_class) << 24 | (destination & 0xffffff));
  writer.U32(static_cast<uint32_t>(hop_limit) << 24 | (source & 0xffffff));
  writer.U32(qkey);
  uint8_t bytes[sizeof immediate];
  std::memcpy(bytes, &immediate, sizeof bytes);
  writer.Bytes(bytes);
  writer.U16(solicited ? kSolicited : 0);
  writer.U16(length);
}

std::string DatagramHeader::ToString() const {
  return Format("%s%s of %u bytes, QP 0x%x to 0x%x, Q_Key 0x%x, immediate 0x%x, traffic class %u, hop limit %u",
                opcode == Opcode::kSend ? "Send" : "Send with Immediate", solicited ? " (solicited)" : "", length, source, destination,
                qkey, ntohl(immediate), traffic_class, hop_limit);
}

GlobalHeader MakeGlobalHeader(const DatagramHeader& header, const transport::SocketAddress& from,
                              const transport::SocketAddress& to) {
  GlobalHeader grh{};
  if (from.family() != to.family()) return grh;
  if (from.family() == AF_INET) {
    WriteIpv4(header, *reinterpret_cast<const sockaddr_in*>(from.get()), *reinterpret_cast<const sockaddr_in*>(to.get()),
              MutableByteSpan(grh).last(20));
  } else if (from.family() == AF_INET6) {
    WriteIpv6(header, *reinterpret_cast<const sockaddr_in6*>(from.get()), *reinterpret_cast<const sockaddr_in6*>(to.get()), grh);
  }
  return grh;
}

}  // namespace weft::sim
