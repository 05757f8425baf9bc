#include "impi/tester/fields.h"

#include <array>

#include "impi/tester/numbers.h"

namespace weft::impi::tester {
namespace {

constexpr std::array<Field, 12> kFields{{
    {"type", 0, 4, [](const Packet& packet) { return static_cast<uint64_t>(packet.type); }},
    {"len", 4, 4, [](const Packet& packet) { return uint64_t{packet.data_length}; }},
    {"srqid", 56, 8, [](const Packet& packet) { return packet.source_request; }},
    {"drqid", 64, 8, [](const Packet& packet) { return packet.destination_request; }},
    {"msglen", 72, 8, [](const Packet& packet) { return packet.message_length; }},
    {"lsrank", 80, 4, [](const Packet& packet) { return static_cast<uint64_t>(packet.source_rank); }},
    {"tag", 84, 4, [](const Packet& packet) { return static_cast<uint64_t>(packet.tag); }},
    {"cid", 88, 8, [](const Packet& packet) { return packet.context; }},
    {"seqnum", 96, 8, [](const Packet& packet) { return packet.sequence; }},
    {"count", 104, 8, [](const Packet& packet) { return packet.count; }},
    {"dtype", 112, 8, [](const Packet& packet) { return packet.datatype; }},
    {"reserved", 120, 8, [](const Packet&) { return uint64_t{0}; }},
}};

}  // namespace

std::span<const Field> Fields() { return kFields; }

const Field* FindField(const std::string& name) {
  for (const Field& field : kFields) {
    if (name == field.name) return &field;
  }
  return nullptr;
}

Result<uint32_t, std::string> ParseType(const std::string& word) {
  for (uint32_t type = 0; type <= static_cast<uint32_t>(kLastPacketType); ++type) {
    if (word == NameOf(static_cast<PacketType>(type))) return type;
  }
  if (const auto number = ParseUpTo(word, UINT32_MAX)) return static_cast<uint32_t>(*number);
  return "'" + word +
         "' is not a type of packets; these are DATA, DATASYNC, PROTOACK, SYNCACK, CANCEL, CANCELYES, CANCELNO, FINI, "
         "or a number";
}

std::string TextOf(const Packet& packet) {
  std::string text = NameOf(packet.type);
  const auto add = [&](const char* name) {
    const uint64_t value = FindField(name)->of(packet);
    const bool is_signed = FindField(name)->bytes == 4;
    text += std::string(" ") + name + " " +
            (is_signed ? std::to_string(static_cast<int32_t>(value)) : std::to_string(value));
  };
  switch (packet.type) {
    case PacketType::kData:
    case PacketType::kDataSync:
      for (const char* name : {"len", "srqid", "drqid", "msglen", "lsrank", "tag", "cid"}) add(name);
      break;
    case PacketType::kSyncAck:
      add("srqid");
      add("drqid");
      break;
    case PacketType::kCancel:
    case PacketType::kCancelYes:
    case PacketType::kCancelNo:
      add("srqid");
      break;
    case PacketType::kProtocolAck:
    case PacketType::kFini:
      break;
  }
  return text;
}

}  // namespace weft::impi::tester
