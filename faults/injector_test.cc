#include "faults/injector.h"

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>

#include "base/log.h"

namespace weft::faults {
namespace {

class InjectorTest : public testing::Test {
 protected:
  void SetUp() override { SilenceWarnings(true); }
  void TearDown() override { injector.Clear(); }
  void Set(const std::string& text) { injector.Set(*Parse(text)); }
  // Which of `count` occasions were faults, as a string of digits.
  std::string Pattern(int count, Kind kind, const Place& place = {}) {
    std::string pattern;
    for (int i = 0; i < count; ++i) pattern += injector.Ask(kind, place, "here") ? '1' : '0';
    return pattern;
  }
  Injector& injector = Injector::Process();
};

TEST_F(InjectorTest, IsEnabledOnlyWhileThereAreFaults) {
  EXPECT_FALSE(Enabled());
  Set("rnr");
  EXPECT_TRUE(Enabled());
  Set("");
  EXPECT_FALSE(Enabled());
}

TEST_F(InjectorTest, TriggersChooseAmongOccasions) {
  Set("rnr nth=3");
  EXPECT_EQ(Pattern(6, Kind::kRnr), "001000");
  Set("rnr every=2");
  EXPECT_EQ(Pattern(6, Kind::kRnr), "010101");
  Set("rnr every=2 times=2");
  EXPECT_EQ(Pattern(6, Kind::kRnr), "010100");
  Set("rnr times=1");
  EXPECT_EQ(Pattern(3, Kind::kRnr), "100");
  Set("rnr probability=0");
  EXPECT_EQ(Pattern(3, Kind::kRnr), "000");
  Set("rnr after=1h");
  EXPECT_EQ(Pattern(3, Kind::kRnr), "000");
}

TEST_F(InjectorTest, TheSameSeedGivesTheSameFaults) {
  Set("rnr probability=0.5; seed=9");
  const std::string first = Pattern(64, Kind::kRnr);
  Set("rnr probability=0.5; seed=9");
  EXPECT_EQ(Pattern(64, Kind::kRnr), first);
  Set("rnr probability=0.5; seed=10");
  EXPECT_NE(Pattern(64, Kind::kRnr), first);
  EXPECT_NE(first.find('1'), first.npos);
  EXPECT_NE(first.find('0'), first.npos);
}

TEST_F(InjectorTest, SelectorsKeepOthersOutAndUncounted) {
  const auto peer = *transport::SocketAddress::Parse("10.0.0.1", 7471);
  Set("completion status=GENERAL_ERR qp=5 opcode=SEND peer=10.0.0.1 device=weft_lo nth=2");
  const Place right{.qp = 5, .peer = &peer, .opcode = IBV_WR_SEND, .device = "weft_lo"};
  Place other = right;
  other.qp = 6;
  EXPECT_EQ(Pattern(3, Kind::kCompletion, other), "000");
  other = right;
  other.opcode = IBV_WR_RDMA_READ;
  EXPECT_EQ(Pattern(3, Kind::kCompletion, other), "000");
  other = right;
  other.device = "weft_eth0";
  EXPECT_EQ(Pattern(3, Kind::kCompletion, other), "000");
  EXPECT_EQ(Pattern(3, Kind::kCompletion), "000");
  EXPECT_EQ(Pattern(3, Kind::kRnr, right), "000");
  EXPECT_EQ(Pattern(3, Kind::kCompletion, right), "010");
}

TEST_F(InjectorTest, FailuresOfVerbsAreTheErrnoAsked) {
  Set("fail call=ibv_reg_mr errno=ENOMEM nth=2; fail call=ibv_create_qp errno=EAGAIN device=weft_lo");
  EXPECT_EQ(FailureOf(Call::kRegMr, "weft_lo"), 0);
  EXPECT_EQ(FailureOf(Call::kRegMr, "weft_lo"), ENOMEM);
  EXPECT_EQ(FailureOf(Call::kRegMr, "weft_lo"), 0);
  EXPECT_EQ(FailureOf(Call::kCreateQp, "weft_eth0"), 0);
  EXPECT_EQ(FailureOf(Call::kCreateQp, "weft_lo"), EAGAIN);
  EXPECT_EQ(FailureOf(Call::kAllocPd, "weft_lo"), 0);
}

TEST_F(InjectorTest, ShowsCounts) {
  Set("rnr every=2; seed=3");
  Pattern(5, Kind::kRnr);
  EXPECT_EQ(injector.Show(), "rnr every=2   # injected 2, occasions 5\nseed=3\n");
  injector.Clear();
  EXPECT_EQ(injector.Show(), "");
}

TEST_F(InjectorTest, ShownPlanCanBeSetAgain) {
  Set("cut after=1s nth=2; reset peer=[::1]:5");
  EXPECT_TRUE(Parse(injector.Show()).ok());
}

}  // namespace
}  // namespace weft::faults
