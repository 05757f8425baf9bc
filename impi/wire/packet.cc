#include "impi/wire/packet.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace weft::impi {
namespace {

constexpr size_t kIpv4At = 12;  // in a HostId

bool IsIpv4(const HostId& host) {
  const bool zeros = std::all_of(host.begin(), host.begin() + 10, [](uint8_t byte) { return byte == 0; });
  const bool plain = host[10] == 0 && host[11] == 0, mapped = host[10] == 0xff && host[11] == 0xff;
  return zeros && (plain || mapped);
}

void Write(ByteWriter& writer, const ProcessName& process) {
  writer.Bytes(process.host);
  writer.U64(static_cast<uint64_t>(process.number));
}

ProcessName ReadProcess(ByteReader& reader) {
  ProcessName process;
  const ByteSpan host = reader.Bytes(process.host.size());
  std::copy(host.begin(), host.end(), process.host.begin());
  process.host = Canonical(process.host);
  process.number = static_cast<int64_t>(reader.U64());
  return process;
}

}  // namespace

HostId HostIdOfIpv4(uint32_t address) {
  HostId host{};
  std::memcpy(host.data() + kIpv4At, &address, sizeof address);
  return host;
}

HostId Canonical(const HostId& host) {
  if (!IsIpv4(host)) return host;
  HostId canonical = host;
  canonical[10] = canonical[11] = 0;
  return canonical;
}

std::string TextOf(const HostId& host) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (IsIpv4(host)) {
    inet_ntop(AF_INET, host.data() + kIpv4At, text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, host.data(), text.data(), text.size());
  }
  return text.data();
}

std::string TextOf(const ProcessName& process) { return TextOf(process.host) + "/" + std::to_string(process.number); }

const char* NameOf(PacketType type) {
  static constexpr const char* kNames[] = {"DATA", "DATASYNC", "PROTOACK", "SYNCACK", "CANCEL", "CANCELYES", "CANCELNO", "FINI"};
  return type <= kLastPacketType ? kNames[static_cast<size_t>(type)] : "unknown";
}

void Packet::Serialize(std::span<uint8_t, kSize> into) const {
  const Packet none;
  const Packet& data = has_data() ? *this : none;
  ByteWriter writer(into);
  writer.U32(static_cast<uint32_t>(type));
  writer.U32(data.data_length);
  Write(writer, source);
  Write(writer, destination);
  writer.U64(source_request);
  writer.U64(destination_request);
  writer.U64(data.message_length);
  writer.U32(static_cast<uint32_t>(data.source_rank));
  writer.U32(static_cast<uint32_t>(data.tag));
  writer.U64(data.context);
  writer.U64(data.sequence);
  writer.U64(data.count);
  writer.U64(data.datatype);
  writer.U64(0);  // reserved
  WEFT_CHECK(writer.room() == 0);
}

Result<Packet, std::string> Packet::Parse(std::span<const uint8_t, kSize> bytes, const PacketLimits& limits) {
  ByteReader reader(bytes);
  Packet packet;
  const uint32_t type = reader.U32();
  if (type > static_cast<uint32_t>(kLastPacketType)) return "pk_type is " + std::to_string(type) + "; the highest one is 7";
  packet.type = static_cast<PacketType>(type);
  const uint32_t length = reader.U32();
  packet.source = ReadProcess(reader);
  packet.destination = ReadProcess(reader);
  packet.source_request = reader.U64();
  packet.destination_request = reader.U64();
  if (!packet.has_data()) return packet;
  packet.data_length = length;
  packet.message_length = reader.U64();
  packet.source_rank = static_cast<int32_t>(reader.U32());
  packet.tag = static_cast<int32_t>(reader.U32());
  packet.context = reader.U64();
  packet.sequence = reader.U64();
  packet.count = reader.U64();
  packet.datatype = reader.U64();
  if (length > limits.data_length) {
    return "pk_len is " + std::to_string(length) + "; the hosts agreed on at most " + std::to_string(limits.data_length) + " (IMPI_C_DATALEN)";
  }
  if (packet.message_length < length) {
    return "pk_msglen is " + std::to_string(packet.message_length) + ", less than the " + std::to_string(length) + " bytes of the packet";
  }
  if (packet.source_rank < 0) return "pk_lsrank is " + std::to_string(packet.source_rank);
  if (packet.tag < 0 || packet.tag > limits.tag) {
    return "pk_tag is " + std::to_string(packet.tag) + "; the clients agreed on 0 to " + std::to_string(limits.tag) + " (IMPI_C_TAGUB)";
  }
  return packet;
}

}  // namespace weft::impi
