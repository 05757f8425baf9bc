#include "impi/entry/welcome.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "base/check.h"
#include "impi/entry/hello.h"

namespace weft::impi {
namespace {

constexpr size_t kFixed = 4 * sizeof(uint32_t);
constexpr size_t kBlock = 65536;  // bytes that are read at once: memory grows with what came

std::string Wrong(const std::string& what) { return "the agent's answer is wrong: " + what + "; use impirun and the MPI library from one release"; }

Result<std::map<Label, Collected>, std::string> ReadTold(ByteReader& reader) {
  std::map<Label, Collected> told;
  while (reader.remaining() != 0) {
    if (reader.remaining() < Command::kHeader) return Wrong("it ends within a command");
    const auto code = static_cast<CommandCode>(reader.U32());
    const uint32_t length = reader.U32();
    if (code != CommandCode::kColl) return Wrong("it contains " + NameOf(code) + " where COLL is expected");
    if (length > reader.remaining()) return Wrong("a COLL of " + std::to_string(length) + " bytes, of which " + std::to_string(reader.remaining()) + " came");
    const ByteSpan payload = reader.Bytes(length);
    std::optional<Collected> one = Collected::FromServer({code, Bytes(payload.begin(), payload.end())});
    if (!one) return Wrong("a COLL of " + std::to_string(length) + " bytes; a label and a mask have 8");
    const Label label = one->label;
    if (!told.emplace(label, *std::move(one)).second) return Wrong(NameOf(label) + " comes twice");
  }
  return told;
}

}  // namespace

Bytes Welcome::Serialize(ClientRank self, int clients, const std::map<Label, Collected>& told, const std::vector<int32_t>& own, uint32_t lam_clients) {
  Command command{kWelcomeCommand, Bytes(kFixed + own.size() * sizeof(uint32_t))};
  ByteWriter writer(command.payload);
  writer.U32(static_cast<uint32_t>(self.value));
  writer.U32(static_cast<uint32_t>(clients));
  writer.U32(lam_clients);
  writer.U32(static_cast<uint32_t>(own.size()));
  for (const int32_t rank : own) writer.U32(static_cast<uint32_t>(rank));
  for (const auto& [label, collected] : told) {
    const Bytes bytes = collected.ToClient().Serialize();
    command.payload.insert(command.payload.end(), bytes.begin(), bytes.end());
  }
  WEFT_CHECK(command.payload.size() <= kLongest);
  return command.Serialize();
}

Result<Welcome, std::string> Welcome::Parse(ByteSpan payload, int32_t rank) {
  ByteReader reader(payload);
  if (reader.remaining() < kFixed) return Wrong("it has " + std::to_string(payload.size()) + " bytes; at least 16 are expected");
  const auto client = static_cast<int32_t>(reader.U32()), clients = static_cast<int32_t>(reader.U32());
  if (clients < 1 || clients > Job::kMostClients || client < 0 || client >= clients) {
    return Wrong("client " + std::to_string(client) + " of " + std::to_string(clients));
  }
  const uint32_t lam_clients = reader.U32(), count = reader.U32();
  if (count > reader.remaining() / sizeof(uint32_t)) return Wrong("this client has " + std::to_string(count) + " processes, and fewer ranks came");
  std::vector<int32_t> own;
  own.reserve(count);
  for (uint32_t i = 0; i < count; ++i) own.push_back(static_cast<int32_t>(reader.U32()));
  std::vector<int32_t> sorted = own;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int32_t>(i)) return Wrong("the ranks of this client are not 0 to " + std::to_string(count - 1) + ", each once");
  }
  auto told = ReadTold(reader);
  if (!told.ok()) return told.error();
  auto job = Job::Of(clients, *told, ClientRank(client));
  if (!job.ok()) return job.error();
  const std::vector<WorldRank> processes = job->ProcessesOf(ClientRank(client));
  if (processes.size() != own.size()) {
    return Wrong("this client has " + std::to_string(processes.size()) + " processes in the job, and " + std::to_string(own.size()) + " ranks came");
  }
  const auto found = std::find(own.begin(), own.end(), rank);
  if (found == own.end()) return Wrong("rank " + std::to_string(rank) + " is not in it");
  const WorldRank self = processes[static_cast<size_t>(found - own.begin())];
  return Welcome{std::move(job).value(), self, std::move(own), lam_clients};
}

Bytes SerializeDenial(const std::string& why) { return Command{kDenyCommand, Bytes(why.begin(), why.end())}.Serialize(); }

std::optional<int32_t> AnswerReader::length() const {
  if (bytes_.size() < Command::kHeader) return std::nullopt;
  ByteReader reader(bytes_);
  reader.U32();
  return static_cast<int32_t>(reader.U32());
}

size_t AnswerReader::Wants() const {
  const std::optional<int32_t> payload = length();
  if (!payload) return Command::kHeader - bytes_.size();
  if (*payload < 0 || static_cast<size_t>(*payload) > Welcome::kLongest) return 0;
  return std::min(kBlock, Command::kHeader + static_cast<size_t>(*payload) - bytes_.size());
}

void AnswerReader::Append(ByteSpan bytes) {
  WEFT_CHECK(bytes.size() <= Wants());
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

Result<Welcome, std::string> AnswerReader::Take(int32_t rank) const {
  WEFT_CHECK(Wants() == 0);
  ByteReader reader(bytes_);
  const auto code = static_cast<CommandCode>(reader.U32());
  const auto payload = static_cast<int32_t>(reader.U32());
  if (code != kWelcomeCommand && code != kDenyCommand) return Wrong("it begins with " + NameOf(code));
  if (payload < 0 || static_cast<size_t>(payload) > Welcome::kLongest) {
    return Wrong("it has " + std::to_string(payload) + " bytes; at most " + std::to_string(Welcome::kLongest) + " are accepted");
  }
  const ByteSpan rest = reader.Rest();
  if (code == kWelcomeCommand) return Welcome::Parse(rest, rank);
  return "the agent refused this process: " + std::string(rest.begin(), rest.end());
}

}  // namespace weft::impi
