#include "mpi_hybrid/survive/note.h"

#include <climits>

#include "base/byte_reader.h"
#include "base/byte_writer.h"

namespace weft::mpi::survive {
namespace {

constexpr size_t kHeader = 16, kAgreementHeader = 8;

}  // namespace

std::vector<uint8_t> Note::Serialize() const {
  const Ballot& ballot = message.ballot;
  const bool agreement = what == What::kAgreement;
  const size_t words = ballot.words.size() + ballot.voters.words().size();
  std::vector<uint8_t> bytes(kHeader + (agreement ? kAgreementHeader + words * sizeof(uint64_t) : 0));
  ByteWriter writer(bytes);
  writer.U8(static_cast<uint8_t>(what));
  writer.U8(agreement ? static_cast<uint8_t>(message.kind) : 0);
  writer.U16(0);
  writer.U32(number);
  writer.U64(identity);
  if (!agreement) return bytes;
  writer.U32(static_cast<uint32_t>(message.proposer));
  writer.U32(static_cast<uint32_t>(ballot.words.size()));
  for (const uint64_t word : ballot.words) writer.U64(word);
  for (const uint64_t word : ballot.voters.words()) writer.U64(word);
  return bytes;
}

std::optional<ParsedNote> ParseNote(std::span<const uint8_t> bytes) {
  if (bytes.size() < kHeader) return std::nullopt;
  ByteReader reader(bytes);
  ParsedNote parsed;
  Note& note = parsed.note;
  const uint8_t what = reader.U8(), kind = reader.U8();
  if (reader.U16() != 0) return std::nullopt;
  note.number = reader.U32();
  note.identity = reader.U64();
  if (note.identity == 0) return std::nullopt;
  if (what == static_cast<uint8_t>(Note::What::kRevoke) || what == static_cast<uint8_t>(Note::What::kAbort)) {
    note.what = static_cast<Note::What>(what);
    return kind == 0 && reader.remaining() == 0 ? std::optional(parsed) : std::nullopt;
  }
  if (what != static_cast<uint8_t>(Note::What::kAgreement) || reader.remaining() < kAgreementHeader) return std::nullopt;
  if (kind < static_cast<uint8_t>(Message::Kind::kVote) || kind > static_cast<uint8_t>(Message::Kind::kDecide)) return std::nullopt;
  note.what = Note::What::kAgreement;
  note.message.kind = static_cast<Message::Kind>(kind);
  const uint32_t proposer = reader.U32(), words = reader.U32();
  if (proposer > INT_MAX || reader.remaining() % sizeof(uint64_t) != 0 || words > reader.remaining() / sizeof(uint64_t)) return std::nullopt;
  note.message.proposer = static_cast<int>(proposer);
  for (uint32_t i = 0; i < words; ++i) note.message.ballot.words.push_back(reader.U64());
  while (reader.remaining() != 0) parsed.voters.push_back(reader.U64());
  return parsed;
}

// A question says nothing of voters, and an acceptance nothing else.
bool ParsedNote::SetVoters(int size) {
  Ballot& ballot = note.message.ballot;
  ballot.voters = RankSet(size);
  if (note.message.proposer >= size) return false;
  const Message::Kind kind = note.message.kind;
  if (kind == Message::Kind::kAsk) return voters.empty() && ballot.words.empty();
  if (kind == Message::Kind::kAccept && !ballot.words.empty()) return false;
  return ballot.voters.Assign(voters);
}

}  // namespace weft::mpi::survive
