#include "ddp/sctp/set_up_data.h"

#include <gtest/gtest.h>

namespace weft::ddp::sctp {
namespace {

using Bytes = std::vector<uint8_t>;

TEST(SetUpDataTest, TheBytesAreReadsThenTheProgramsThenTheTrailer) {
  SetUpData data{
      .reads = llp::ReadWords{.ird = 0x0010, .ord = 0x0020}, .program = {'h', 'i'}, .trailer = llp::WeftTrailer{}};
  data.trailer->host_id = 0x0102030405060708;
  data.trailer->flags = 3;
  const Bytes bytes = *data.Serialize();
  EXPECT_EQ(bytes, (Bytes{0, 16,   0,    32, 'h', 'i', 1,   2,   3,   4,   5,   6,   7,
                          8, 0xff, 0xff, 3,  1,   'W', 'e', 'f', 't', 'R', 'N', 'I', 'C'}));

  const SetUpData back = SetUpData::Parse(bytes, true, true);
  EXPECT_EQ(back.reads->ird, 16);
  EXPECT_EQ(back.reads->ord, 32);
  EXPECT_EQ(back.program, data.program);
  EXPECT_EQ(back.trailer->host_id, data.trailer->host_id);

  // What a program on another make's end sees of an enhanced Initiate: its peer's bytes and twenty more.
  EXPECT_EQ(SetUpData::Parse(bytes, true, false).program.size(), 22u);
}

TEST(SetUpDataTest, AForeignPeersBytesAreTheProgramsAlone) {
  const SetUpData data = SetUpData::Parse(Bytes{1, 2, 3}, false, true);
  EXPECT_FALSE(data.reads || data.trailer);
  EXPECT_EQ(data.program, (Bytes{1, 2, 3}));
  EXPECT_EQ(SetUpData::Parse(Bytes{1, 2, 3, 4}, true, true).program, Bytes{});
}

TEST(SetUpDataTest, TheProgramsBytesComeFirstWhenThereIsNoRoom) {
  for (const bool reads : {false, true}) {
    SetUpData data{.trailer = llp::WeftTrailer{}};
    if (reads) data.reads = llp::ReadWords{};
    const size_t most = SetUpData::Room(reads);
    EXPECT_EQ(most, reads ? 508u : 512u);
    data.program.assign(most - 20, 1);
    EXPECT_TRUE(SetUpData::Parse(*data.Serialize(), reads, true).trailer);
    data.program.assign(most - 19, 1);
    EXPECT_FALSE(SetUpData::Parse(*data.Serialize(), reads, true).trailer);
    data.program.assign(most, 1);
    EXPECT_EQ(data.Serialize()->size(), kMaxPrivateData);
    data.program.push_back(1);
    EXPECT_FALSE(data.Serialize());
  }
}

TEST(SetUpDataTest, TwoEndsAgreeOnReads) {
  const llp::ReadParams a{.ird = 16, .ord = 4}, b{.ird = 8, .ord = 32};
  llp::Outcome at_a, at_b;
  const llp::ReadWords asked = llp::AskForReads(a);
  const llp::ReadWords answer = llp::AnswerReads(asked, b, &at_b);
  EXPECT_EQ(llp::OnReadsAnswer(a, answer, false, &at_a), llp::ReadsError::kNone);
  EXPECT_EQ(at_a.ord, 4);
  EXPECT_EQ(at_b.ird, 4);
  EXPECT_EQ(at_b.ord, 16);
  EXPECT_EQ(at_a.ird, 16);
  EXPECT_EQ(at_a.rtr, llp::Rtr::kNone);  // SCTP needs none: either end may send first
}

}  // namespace
}  // namespace weft::ddp::sctp
