// What other ranks say in agreements and revocations. An even first byte: the rest is one note. An odd one: a process takes part in an agreement, and
// the rest is what befalls it: | what : 8 | rank : 8 | length : 8 | note ... | ...
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "mpi_hybrid/survive/consensus.h"
#include "mpi_hybrid/survive/note.h"

namespace weft::mpi::survive {
namespace {

using Bytes = std::span<const uint8_t>;

// One that is taken means what its own bytes say.
void ReadNote(Bytes given) {
  // Of its own allocation, so that AddressSanitizer sees each byte beside it.
  const std::vector<uint8_t> bytes(given.begin(), given.end());
  auto parsed = ParseNote(bytes);
  if (!parsed) return;
  const size_t voters = parsed->voters.size();
  for (const int size : {1, 64, 65, static_cast<int>(voters * 64)}) {
    ParsedNote copy = *parsed;
    if (size == 0 || !copy.SetVoters(size)) continue;
    WEFT_CHECK(copy.note.message.proposer < size && copy.note.message.ballot.voters.size() == size);
    WEFT_CHECK(copy.note.message.ballot.voters.Count() <= size);
    if (voters != 0) WEFT_CHECK(copy.note.Serialize() == bytes);
  }
  if (parsed->note.what == Note::What::kRevoke) WEFT_CHECK(parsed->note.Serialize() == bytes);
}

// Sends nothing to itself or to nobody, and what others can read; decides once.
class Member final : Consensus::Outbox {
 public:
  Member(int self, int size) : self_(self), size_(size), consensus_(self, size, *this) {}

  void Vote() {
    if (voted_) return;
    voted_ = true;
    consensus_.Vote({4, 0xff});
    Look();
  }
  void Die(int rank) {
    consensus_.OnDead(rank);
    Look();
  }
  void Hear(int from, Bytes bytes) {
    auto parsed = ParseNote(bytes);
    if (!parsed || from == self_ || !parsed->SetVoters(size_)) return;
    consensus_.OnMessage(from, parsed->note.message);
    Look();
  }

 private:
  void Send(int rank, const Message& message) override {
    WEFT_CHECK(rank >= 0 && rank < size_ && rank != self_);
    const Note note{.what = Note::What::kAgreement, .identity = 1, .number = 1, .message = message};
    auto parsed = ParseNote(note.Serialize());
    WEFT_CHECK(parsed && parsed->SetVoters(size_) && parsed->note.message.ballot == Sent(message));
  }
  // Questions and acceptances have no ballot, and their voters are none of the group's.
  Ballot Sent(const Message& message) const {
    return {.words = message.ballot.words, .voters = message.ballot.voters.size() == 0 ? RankSet(size_) : message.ballot.voters};
  }
  void Look() {
    for (int rank = 0; rank < size_; ++rank) WEFT_CHECK(!consensus_.Awaits(rank) || (rank != self_ && !consensus_.is_dead(rank)));
    if (!consensus_.decision()) return;
    WEFT_CHECK(!decided_ || *decided_ == *consensus_.decision());
    decided_ = consensus_.decision();
    (void)decided_->IsOf({4, 0xff});
  }

  const int self_, size_;
  Consensus consensus_;
  std::optional<Ballot> decided_;
  bool voted_ = false;
};

void TakePart(Bytes bytes) {
  if (bytes.size() < 2) return;
  const int size = 1 + bytes[0] % 70, self = bytes[1] % size;
  Member member(self, size);
  for (bytes = bytes.subspan(2); bytes.size() >= 3;) {
    const uint8_t what = bytes[0];
    const int rank = bytes[1] % size;
    const size_t length = std::min<size_t>(bytes[2], bytes.size() - 3);
    const Bytes note = bytes.subspan(3, length);
    bytes = bytes.subspan(3 + length);
    if (what % 8 == 0) {
      member.Vote();
    } else if (what % 8 == 1) {
      member.Die(rank);
    } else {
      member.Hear(rank, note);
    }
  }
}

}  // namespace
}  // namespace weft::mpi::survive

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::mpi::survive;
  if (size == 0) return 0;
  const Bytes rest(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    ReadNote(rest);
  } else {
    TakePart(rest);
  }
  return 0;
}
