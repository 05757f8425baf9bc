#include "rdmap/terminate.h"

#include <algorithm>
#include <cstdio>

#include "base/byte_writer.h"
#include "ddp/error.h"
#include "ddp/header.h"
#include "rdmap/error.h"

namespace weft::rdmap {
namespace {

//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// | Layer | EType |   Error Code  |M|D|R|        Reserved         |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |  DDP Segment Length (M or D)  |  Terminated DDP Header (D), Terminated RDMA Header (R) ...
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
constexpr size_t kControlLength = 4;
constexpr uint8_t kLengthBit = 0x80;      // M
constexpr uint8_t kDdpHeaderBit = 0x40;   // D
constexpr uint8_t kReadHeaderBit = 0x20;  // R

// RFC 5044 section 8 and RFC 6581 section 8: layer LLP, type 0.
const char* MpaErrorName(uint8_t code) {
  switch (code) {
    case 1:
      return "TCP connection closed, terminated or lost";
    case 2:
      return "CRC does not match";
    case 3:
      return "marker and ULPDU length do not agree";
    case 4:
      return "invalid MPA request or reply";
    case 5:
      return "local catastrophic error";
    case 6:
      return "insufficient IRD resources";
    case 7:
      return "no matching RTR option";
  }
  return nullptr;
}

struct Words {
  const char* layer;
  const char* type;
  const char* code;
};

Words Describe(TerminateLayer layer, uint8_t type, uint8_t code) {
  switch (layer) {
    case TerminateLayer::kRdmap:
      return {"RDMAP", ErrorTypeName(type), ErrorCodeName(type, code)};
    case TerminateLayer::kDdp:
      return {"DDP", ddp::ErrorTypeName(type), ddp::ErrorCodeName(type, code)};
    case TerminateLayer::kLlp:
      return {"LLP", type == 0 ? "MPA error" : nullptr, type == 0 ? MpaErrorName(code) : nullptr};
  }
  return {"unknown layer", nullptr, nullptr};
}

}  // namespace

std::optional<TerminateMessage> TerminateMessage::Parse(ByteSpan payload) {
  if (payload.size() < kControlLength) return std::nullopt;
  ByteReader reader(payload);
  TerminateMessage message;
  const uint8_t layer_and_type = reader.U8();
  message.layer = static_cast<TerminateLayer>(layer_and_type >> 4);
  message.error_type = layer_and_type & 0x0f;
  message.error_code = reader.U8();
  const uint8_t announced = reader.U8();
  reader.U8();  // reserved

  if ((announced & (kLengthBit | kDdpHeaderBit)) != 0) {
    if (reader.remaining() < 2) return std::nullopt;
    const uint16_t length = reader.U16();
    if ((announced & kLengthBit) != 0) message.ddp_segment_length = length;
  }
  if ((announced & kDdpHeaderBit) != 0) {
    if (reader.remaining() == 0) return std::nullopt;
    const bool tagged = ddp::ControlField::Parse(payload[payload.size() - reader.remaining()]).tagged;
    const size_t length = tagged ? ddp::TaggedHeader::kLength : ddp::UntaggedHeader::kLength;
    if (reader.remaining() < length) return std::nullopt;
    std::ranges::copy(reader.Bytes(length), message.ddp_header.begin());
    message.ddp_header_length = static_cast<uint8_t>(length);
  }
  if ((announced & kReadHeaderBit) != 0) {
    if (reader.remaining() < message.read_header.size()) return std::nullopt;
    std::ranges::copy(reader.Bytes(message.read_header.size()), message.read_header.begin());
    message.has_read_header = true;
  }
  return message;
}

size_t TerminateMessage::Serialize(MutableByteSpan storage) const {
  ByteWriter writer(storage);
  const bool with_header = ddp_header_length != 0;
  writer.U8(static_cast<uint8_t>(static_cast<uint8_t>(layer) << 4 | (error_type & 0x0f)));
  writer.U8(error_code);
  writer.U8(static_cast<uint8_t>((ddp_segment_length ? kLengthBit : 0) | (with_header ? kDdpHeaderBit : 0) |
                                 (has_read_header ? kReadHeaderBit : 0)));
  writer.U8(0);
  // "It MUST be present when the D bit is set", valid or not.
  if (ddp_segment_length || with_header) writer.U16(ddp_segment_length.value_or(0));
  if (with_header) writer.Bytes(ByteSpan(ddp_header).first(ddp_header_length));
  if (has_read_header) writer.Bytes(read_header);
  return writer.size();
}

std::string TerminateMessage::ToString() const {
  const Words words = Describe(layer, error_type, error_code);
  std::string text = words.layer;
  text += ' ';
  text += words.type != nullptr ? words.type : "error of unknown type";
  if (words.code != nullptr) {
    text += ": ";
    text += words.code;
  }
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, " (layer %u type %u code 0x%02x)", static_cast<unsigned>(layer), error_type,
                error_code);
  return text + numbers;
}

}  // namespace weft::rdmap
