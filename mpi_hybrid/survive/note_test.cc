#include "mpi_hybrid/survive/note.h"

#include <gtest/gtest.h>

#include <random>

namespace weft::mpi::survive {
namespace {

using Bytes = std::vector<uint8_t>;

Note Proposal() {
  Note note{.what = Note::What::kAgreement, .identity = 0x1122334455667788, .number = 3, .message = {}};
  note.message = {.kind = Message::Kind::kAdopted, .proposer = 1, .ballot = {.words = {7, ~uint64_t{0}}, .voters = RankSet(70)}};
  note.message.ballot.voters.Add(0);
  note.message.ballot.voters.Add(69);
  return note;
}

TEST(Note, HasTheseBytes) {
  const Note revoke{.what = Note::What::kRevoke, .identity = 0x0102030405060708, .number = 0, .message = {}};
  EXPECT_EQ(revoke.Serialize(), (Bytes{1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}));
  const Note abort{.what = Note::What::kAbort, .identity = 0x0102030405060708, .number = 5, .message = {}};
  EXPECT_EQ(abort.Serialize(), (Bytes{3, 0, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8}));
  Note ask{.what = Note::What::kAgreement, .identity = 1, .number = 2, .message = {.kind = Message::Kind::kAsk, .proposer = 0, .ballot = {}}};
  EXPECT_EQ(ask.Serialize(), (Bytes{2, 3, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Note, KeepsItsMeaning) {
  const Note note = Proposal();
  auto parsed = ParseNote(note.Serialize());
  ASSERT_TRUE(parsed);
  ASSERT_TRUE(parsed->SetVoters(70));
  EXPECT_EQ(parsed->note.identity, note.identity);
  EXPECT_EQ(parsed->note.number, 3u);
  EXPECT_EQ(parsed->note.message.kind, Message::Kind::kAdopted);
  EXPECT_EQ(parsed->note.message.proposer, 1);
  EXPECT_EQ(parsed->note.message.ballot, note.message.ballot);
}

TEST(Note, OfAnAbortKeepsItsMeaning) {
  const auto parsed = ParseNote(Note{.what = Note::What::kAbort, .identity = 9, .number = 5, .message = {}}.Serialize());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->note.what, Note::What::kAbort);
  EXPECT_EQ(parsed->note.identity, 9u);
  EXPECT_EQ(parsed->note.number, 5u);
}

TEST(Note, IsOfAGroupOfItsSizeOnly) {
  for (const int size : {1, 64, 69, 129}) EXPECT_FALSE(ParseNote(Proposal().Serialize())->SetVoters(size)) << size;
}

TEST(Note, RefusesWhatIsCutOrNotInOrder) {
  const Bytes whole = Proposal().Serialize();
  for (size_t length = 0; length < whole.size(); ++length) {
    auto parsed = ParseNote(std::span(whole).first(length));
    EXPECT_FALSE(parsed && parsed->SetVoters(70)) << length;
  }
  for (const auto& [at, value] : {std::pair{0, 0}, {0, 3}, {1, 0}, {1, 7}, {2, 1}, {16, 0x80}, {20, 1}}) {
    Bytes bad = whole;
    bad[static_cast<size_t>(at)] = static_cast<uint8_t>(value);
    EXPECT_FALSE(ParseNote(bad)) << at << " " << value;
  }
}

TEST(Note, TakesAnyBytes) {
  std::mt19937 random(1);
  for (int run = 0; run < 20000; ++run) {
    Bytes bytes = Proposal().Serialize();
    for (size_t i = 1 + random() % 4; i != 0; --i) bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    bytes.resize(random() % (bytes.size() + 1));
    if (auto parsed = ParseNote(bytes)) (void)parsed->SetVoters(static_cast<int>(random() % 200) + 1);
  }
}

}  // namespace
}  // namespace weft::mpi::survive
