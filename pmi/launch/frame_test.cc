#include "pmi/launch/frame.h"

#include <gtest/gtest.h>

namespace weft::pmi {
namespace {

StartOrder Order() {
  StartOrder order;
  order.job_size = 5;
  order.universe_size = -1;
  order.kvs_name = "kvs_1";
  order.spawner = "kvs_0";
  order.values = {{"weft_secret", "00ff"}, {"empty", ""}};
  order.host_address = "192.0.2.1";
  order.bind_to = "core:2";
  order.map_by = "socket";
  order.programs = {{{"./a", "", "x y"}, {"A=1", "B="}, "/tmp", "/opt:bin"}, {{"b"}, {}, "/", ""}};
  order.ranks = {{1, 0}, {4, 1}};
  return order;
}

TEST(PmiFrame, HasALengthATypeAJobANumberAHostAndAPayload) {
  EXPECT_EQ((Frame{FrameType::kSignal, 0x01020304, "ab", 5, 6}).Serialize(), std::string("\0\0\0\2\3\0\0\0\5\1\2\3\4\0\0\0\6ab", 19));
}

TEST(PmiFrame, ComesTogetherFromEverySplit) {
  const std::string stream = Frame{FrameType::kOutput, 7, "hello", 3}.Serialize() + Frame{FrameType::kDone, -1, ""}.Serialize();
  for (size_t split = 0; split <= stream.size(); ++split) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (const std::string& part : {stream.substr(0, split), stream.substr(split)}) {
      reader.Append(part);
      while (auto frame = reader.Next()) frames.push_back(*frame);
    }
    ASSERT_EQ(frames.size(), 2u) << split;
    EXPECT_EQ(frames[0].type, FrameType::kOutput);
    EXPECT_EQ(frames[0].number, 7);
    EXPECT_EQ(frames[0].payload, "hello");
    EXPECT_EQ(frames[0].job, 3);
    EXPECT_EQ(frames[1].number, -1);
    EXPECT_FALSE(reader.failed());
  }
}

TEST(PmiFrame, RefusesTypesAndLengthsThatCannotBe) {
  for (const std::string& header : {std::string(17, '\0'), std::string("\0\0\0\0\x7f", 5) + std::string(12, '\0'),
                                    std::string("\xff\xff\xff\xff\1", 5) + std::string(12, '\0'), std::string("\4\0\0\1\1", 5) + std::string(12, '\0')}) {
    FrameReader reader;
    reader.Append(header);
    EXPECT_FALSE(reader.Next());
    EXPECT_TRUE(reader.failed());
    reader.Append(Frame{FrameType::kDone}.Serialize());
    EXPECT_FALSE(reader.Next());
  }
}

TEST(PmiFrame, StartOrderComesBackAsItWas) {
  const auto parsed = StartOrder::Parse(Order().Serialize());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, Order());
}

TEST(PmiFrame, AnyShortenedOrLengthenedStartOrderIsRefused) {
  const std::string whole = Order().Serialize();
  for (size_t length = 0; length < whole.size(); ++length) EXPECT_FALSE(StartOrder::Parse(whole.substr(0, length))) << length;
  EXPECT_FALSE(StartOrder::Parse(whole + '\0'));
}

TEST(PmiFrame, StartOrderNamesOnlyRanksAndProgramsThatThereAre) {
  for (const StartOrder::Rank& rank :
       {StartOrder::Rank{5, 0}, StartOrder::Rank{-1, 0}, StartOrder::Rank{0, 2}, StartOrder::Rank{0, -1}}) {
    StartOrder order = Order();
    order.ranks = {rank};
    EXPECT_FALSE(StartOrder::Parse(order.Serialize())) << rank.rank << " " << rank.program;
  }
  StartOrder order = Order();
  order.programs[0].arguments.clear();
  EXPECT_FALSE(StartOrder::Parse(order.Serialize()));
}

TEST(PmiFrame, CountsThatPromiseMoreThanThereIsAllocateNothing) {
  EXPECT_FALSE(ParseValues(std::string("\xff\xff\xff\xff", 4)));
  EXPECT_FALSE(ParseValues(std::string("\0\0\0\1\xff\xff\xff\xff", 8)));
  EXPECT_TRUE(ParseValues(std::string("\0\0\0\0", 4)));
}

TEST(PmiFrame, ReportsComeBackAsTheyWere) {
  const ExitReport report = ExitReport::Parse(ExitReport{139, Server::State::kInitialised}.Serialize());
  EXPECT_EQ(report.wait_status, 139);
  EXPECT_EQ(report.state, Server::State::kInitialised);
  EXPECT_EQ(ParseNumberAndText(NumberAndText(-7, "a b")), (std::pair<int, std::string>(-7, "a b")));
  EXPECT_EQ(ParseNumberAndText("12"), (std::pair<int, std::string>(12, "")));
}

TEST(FrameTest, ProfilesAreReadAsTheyWereWritten) {
  const Profile profile{17, 1, uint64_t{1} << 40, 3, 4};
  EXPECT_EQ(Profile::Parse(profile.Serialize()), profile);
  for (const char* wrong : {"", "1 2 3 4", "1 2 3 4 5 6", "1 2 3 4 x", "99999999999 1 1 1 1"}) EXPECT_FALSE(Profile::Parse(wrong)) << wrong;
}

}  // namespace
}  // namespace weft::pmi
