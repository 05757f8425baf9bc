#include "impi/wire/command.h"

#include <array>
#include <cstdio>
#include <utility>

#include "base/byte_writer.h"
#include "base/check.h"

namespace weft::impi {
namespace {

constexpr std::pair<Label, const char*> kLabels[] = {
    {Label::kNone, "IMPI_NO_LABEL"},
    {Label::kVersion, "IMPI_C_VERSION"},
    {Label::kHosts, "IMPI_C_NHOSTS"},
    {Label::kProcesses, "IMPI_C_NPROCS"},
    {Label::kDataLength, "IMPI_C_DATALEN"},
    {Label::kTagUpperBound, "IMPI_C_TAGUB"},
    {Label::kCrossoverSize, "IMPI_C_COLL_XSIZE"},
    {Label::kMaxLinear, "IMPI_C_COLL_MAXLINEAR"},
    {Label::kHostAddress, "IMPI_H_IPV6"},
    {Label::kHostPort, "IMPI_H_PORT"},
    {Label::kHostProcesses, "IMPI_H_NPROCS"},
    {Label::kHostAckMark, "IMPI_H_ACKMARK"},
    {Label::kHostHighWater, "IMPI_H_HIWATER"},
    {Label::kProcessAddress, "IMPI_P_IPV6"},
    {Label::kProcessNumber, "IMPI_P_PID"},
};

std::string Hexadecimal(const char* before, uint32_t number) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%s0x%x", before, number);
  return text.data();
}

}  // namespace

std::string NameOf(CommandCode code) {
  switch (code) {
    case CommandCode::kAuth:
      return "AUTH";
    case CommandCode::kImpi:
      return "IMPI";
    case CommandCode::kColl:
      return "COLL";
    case CommandCode::kDone:
      return "DONE";
    case CommandCode::kFini:
      return "FINI";
  }
  return Hexadecimal("", static_cast<uint32_t>(code));
}

std::string NameOf(Label label) {
  for (const auto& [known, name] : kLabels) {
    if (known == label) return name;
  }
  return Hexadecimal("label ", static_cast<uint32_t>(label));
}

Bytes Command::Serialize() const {
  WEFT_CHECK(payload.size() <= INT32_MAX);
  Bytes bytes(kHeader + payload.size());
  ByteWriter writer(bytes);
  writer.U32(static_cast<uint32_t>(code));
  writer.U32(static_cast<uint32_t>(payload.size()));
  writer.Bytes(payload);
  return bytes;
}

Command Command::OfNumber(CommandCode code, uint32_t number) {
  Command command{code, Bytes(sizeof number)};
  ByteWriter(command.payload).U32(number);
  return command;
}

Bytes AuthChoice::Serialize() const {
  Bytes bytes(kSize);
  ByteWriter writer(bytes);
  writer.U32(static_cast<uint32_t>(which));
  writer.U32(static_cast<uint32_t>(length));
  return bytes;
}

AuthChoice AuthChoice::Parse(ByteSpan bytes) {
  WEFT_CHECK(bytes.size() == kSize);
  ByteReader reader(bytes);
  AuthChoice choice;
  choice.which = static_cast<int32_t>(reader.U32());
  choice.length = static_cast<int32_t>(reader.U32());
  return choice;
}

Bytes SerializeKey(uint64_t key) {
  Bytes bytes(kKeySize);
  ByteWriter(bytes).U64(key);
  return bytes;
}

uint64_t ParseKey(ByteSpan bytes) {
  WEFT_CHECK(bytes.size() == kKeySize);
  return ByteReader(bytes).U64();
}

Command Collected::ToServer() const {
  Command command{CommandCode::kColl, Bytes(sizeof(uint32_t) + values.size())};
  ByteWriter writer(command.payload);
  writer.U32(static_cast<uint32_t>(label));
  writer.Bytes(values);
  return command;
}

Command Collected::ToClient() const {
  Command command{CommandCode::kColl, Bytes(2 * sizeof(uint32_t) + values.size())};
  ByteWriter writer(command.payload);
  writer.U32(static_cast<uint32_t>(label));
  writer.U32(clients);
  writer.Bytes(values);
  return command;
}

std::optional<Collected> Collected::FromClient(const Command& command) {
  ByteReader reader(command.payload);
  if (reader.remaining() < sizeof(uint32_t)) return std::nullopt;
  Collected collected{.label = static_cast<Label>(reader.U32()), .clients = 0, .values = {}};
  const ByteSpan rest = reader.Rest();
  collected.values.assign(rest.begin(), rest.end());
  return collected;
}

std::optional<Collected> Collected::FromServer(const Command& command) {
  ByteReader reader(command.payload);
  if (reader.remaining() < 2 * sizeof(uint32_t)) return std::nullopt;
  Collected collected{.label = static_cast<Label>(reader.U32()), .clients = 0, .values = {}};
  collected.clients = reader.U32();
  const ByteSpan rest = reader.Rest();
  collected.values.assign(rest.begin(), rest.end());
  return collected;
}

std::optional<Command> CommandReader::NextCommand() {
  if (refused_length_ || waiting() < Command::kHeader) return std::nullopt;
  ByteReader reader(Waiting());
  const auto code = static_cast<CommandCode>(reader.U32());
  const auto length = static_cast<int32_t>(reader.U32());
  if (length < 0 || static_cast<size_t>(length) > longest_) {
    refused_length_ = length;
    return std::nullopt;
  }
  if (reader.remaining() < static_cast<size_t>(length)) return std::nullopt;
  const ByteSpan payload = reader.Bytes(static_cast<size_t>(length));
  Command command{code, Bytes(payload.begin(), payload.end())};
  Take(Command::kHeader + payload.size());
  return command;
}

std::optional<Bytes> CommandReader::NextWords(size_t count) {
  if (refused_length_ || waiting() < count) return std::nullopt;
  const ByteSpan words = Waiting().first(count);
  Bytes taken(words.begin(), words.end());
  Take(count);
  return taken;
}

void CommandReader::Take(size_t count) {
  at_ += count;
  if (at_ < buffer_.size()) return;
  buffer_ = {};
  at_ = 0;
}

}  // namespace weft::impi
