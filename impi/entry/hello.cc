#include "impi/entry/hello.h"

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "base/check.h"

namespace weft::impi {

Bytes Hello::Serialize() const {
  Command command{kRankCommand, Bytes(2 * sizeof(uint32_t))};
  ByteWriter writer(command.payload);
  writer.U32(takes_connections ? kTakesConnectionsVersion : kEntryVersion);
  writer.U32(static_cast<uint32_t>(rank));
  return command.Serialize();
}

Result<Hello, std::string> Hello::Parse(ByteSpan bytes) {
  WEFT_CHECK(bytes.size() == kSize);
  ByteReader reader(bytes);
  const auto code = static_cast<CommandCode>(reader.U32());
  if (code != kRankCommand) return "began with " + NameOf(code) + " and not with RANK (0x52414e4b); it is no process of Weft's MPI library";
  const uint32_t length = reader.U32();
  if (length != kSize - Command::kHeader) return "sent RANK with " + std::to_string(length) + " bytes and not 8";
  const uint32_t version = reader.U32();
  if (version != kEntryVersion && version != kTakesConnectionsVersion) {
    return "has version " + std::to_string(version) + " of the MPI library's connection to impirun, and this impirun has " + std::to_string(kEntryVersion) + " and " +
           std::to_string(kTakesConnectionsVersion) + "; use both from one release";
  }
  return Hello{static_cast<int32_t>(reader.U32()), version == kTakesConnectionsVersion};
}

Bytes LinkNotice::Serialize() const {
  Command command{kLinkCommand, Bytes(sizeof(uint32_t))};
  ByteWriter(command.payload).U32(static_cast<uint32_t>(host));
  return command.Serialize();
}

std::optional<LinkNotice> LinkNotice::Parse(ByteSpan bytes) {
  WEFT_CHECK(bytes.size() == kSize);
  ByteReader reader(bytes);
  if (static_cast<CommandCode>(reader.U32()) != kLinkCommand || reader.U32() != sizeof(uint32_t)) return std::nullopt;
  return LinkNotice{static_cast<int32_t>(reader.U32())};
}

}  // namespace weft::impi
