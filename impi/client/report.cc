#include "impi/client/report.h"

#include <algorithm>

#include "base/byte_reader.h"
#include "base/byte_writer.h"

namespace weft::impi {
namespace {

constexpr size_t kNumber = sizeof(uint32_t);

void Append(Bytes& bytes, const std::string& text) { bytes.insert(bytes.end(), text.begin(), text.end()); }

std::string RestOf(ByteReader& reader) {
  const ByteSpan rest = reader.Rest();
  return {rest.begin(), rest.end()};
}

}  // namespace

Command HereReport::ToCommand() const {
  Command command{kHereCommand, Bytes(address.begin(), address.end())};
  command.payload.resize(address.size() + kNumber);
  ByteWriter(std::span(command.payload).last(kNumber)).U32(port);
  Append(command.payload, processes_at);
  return command;
}

std::optional<HereReport> HereReport::From(const Command& command) {
  HereReport report;
  ByteReader reader(command.payload);
  if (command.code != kHereCommand || reader.remaining() < report.address.size() + kNumber) return std::nullopt;
  const ByteSpan address = reader.Bytes(report.address.size());
  std::copy(address.begin(), address.end(), report.address.begin());
  const uint32_t port = reader.U32();
  if (port == 0 || port > UINT16_MAX) return std::nullopt;
  report.port = static_cast<uint16_t>(port);
  report.processes_at = RestOf(reader);
  return report;
}

Command FailReport::ToCommand() const {
  Command command = Command::OfNumber(kFailCommand, by_process ? 1 : 0);
  Append(command.payload, why.substr(0, kLongestReport - kNumber));
  return command;
}

std::optional<FailReport> FailReport::From(const Command& command) {
  ByteReader reader(command.payload);
  if (command.code != kFailCommand || reader.remaining() < kNumber) return std::nullopt;
  const uint32_t by_process = reader.U32();
  if (by_process > 1) return std::nullopt;
  return FailReport{by_process == 1, RestOf(reader)};
}

Command WorkOrder::ToCommand() const {
  Command command = Command::OfNumber(kWorkCommand, static_cast<uint32_t>(host.value));
  command.payload.insert(command.payload.end(), welcome.begin(), welcome.end());
  return command;
}

std::optional<WorkOrder> WorkOrder::From(const Command& command) {
  ByteReader reader(command.payload);
  if (command.code != kWorkCommand || reader.remaining() < kNumber + Command::kHeader) return std::nullopt;
  const HostRank host(static_cast<int32_t>(reader.U32()));
  const ByteSpan welcome = reader.Rest();
  return WorkOrder{host, Bytes(welcome.begin(), welcome.end())};
}

Command CommandOfText(CommandCode code, const std::string& text) {
  Command command{code, {}};
  Append(command.payload, text.substr(0, kLongestReport));
  return command;
}

std::string TextOf(const Command& command) { return {command.payload.begin(), command.payload.end()}; }

}  // namespace weft::impi
