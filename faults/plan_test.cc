#include "faults/plan.h"

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <fstream>

namespace weft::faults {
namespace {

using namespace std::chrono_literals;

Plan Parsed(const std::string& text) {
  auto plan = Parse(text);
  EXPECT_TRUE(plan.ok()) << plan.error().Describe(text);
  return plan.ok() ? *plan : Plan{};
}

std::string Refusal(const std::string& text) {
  const auto plan = Parse(text);
  EXPECT_FALSE(plan.ok()) << text;
  return plan.ok() ? "" : plan.error().Describe(text);
}

TEST(FaultsTableTest, EveryExampleParsesAndEveryKindSaysWhatItDoes) {
  for (const KindInfo& info : AllKinds()) {
    const Plan plan = Parsed(info.example);
    ASSERT_EQ(plan.faults.size(), 1u) << info.example;
    EXPECT_EQ(plan.faults[0].kind, info.kind);
    EXPECT_EQ(&InfoOf(info.kind), &info);
    EXPECT_EQ(info.needs & ~info.takes, 0u) << info.name;
    EXPECT_NE(std::string(info.what), "");
    EXPECT_NE(std::string(info.symptom), "");
  }
}

TEST(FaultsParseTest, NothingIsAPlanWithoutFaults) {
  for (const char* text : {"", "  ", ";", " ; ;; ", "# only a comment", "\n\n# a\n"}) EXPECT_TRUE(Parsed(text).faults.empty()) << text;
}

TEST(FaultsParseTest, ReadsEveryKey) {
  const Fault cut = Parsed("cut qp=0x12 peer=192.0.2.7:7471 device=weft_eth0 after_bytes=64K after=5ms times=3 probability=10%").faults[0];
  EXPECT_EQ(cut.kind, Kind::kCut);
  EXPECT_EQ(cut.qp, 0x12u);
  EXPECT_EQ(cut.peer.port, 7471);
  EXPECT_EQ(cut.peer.host->ToString(), "192.0.2.7:0");
  EXPECT_EQ(cut.device, "weft_eth0");
  EXPECT_EQ(cut.after_bytes, 65536u);
  EXPECT_EQ(cut.after, 5ms);
  EXPECT_EQ(cut.times, 3u);
  EXPECT_DOUBLE_EQ(cut.probability, 0.1);

  const Plan others = Parsed(
      "delay time=1.5ms jitter=500us; bandwidth rate=10mbit every=2\ncompletion status=IBV_WC_RETRY_EXC_ERR opcode=rdma_write nth=5;"
      "fail call=reg_mr errno=enomem; cm_event event=REJECTED errno=111 ; blackhole for=2s give_up=1m; seed=7; completion opcode=RECV status=GENERAL_ERR");
  ASSERT_EQ(others.faults.size(), 7u);
  EXPECT_EQ(others.seed, 7u);
  EXPECT_EQ(others.faults[0].time, 1500us);
  EXPECT_EQ(others.faults[0].jitter, 500us);
  EXPECT_EQ(others.faults[1].bits_per_second, 10'000'000u);
  EXPECT_EQ(others.faults[1].every, 2u);
  EXPECT_EQ(others.faults[2].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(others.faults[2].opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(others.faults[2].nth, 5u);
  EXPECT_EQ(others.faults[3].call, Call::kRegMr);
  EXPECT_EQ(others.faults[3].error, ENOMEM);
  EXPECT_EQ(others.faults[4].event, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(others.faults[4].error, ECONNREFUSED);
  EXPECT_EQ(others.faults[5].lasts, 2s);
  EXPECT_EQ(others.faults[5].give_up, 60s);
  EXPECT_EQ(others.faults[6].opcode, kReceiveOpcode);
}

TEST(FaultsParseTest, PeersAreHostsPortsOrBoth) {
  using transport::SocketAddress;
  const auto matches = [](const char* peer, const char* host, uint16_t port) {
    return Parsed(std::string("cut peer=") + peer).faults[0].peer.Matches(*SocketAddress::Parse(host, port));
  };
  EXPECT_TRUE(matches("10.0.0.1", "10.0.0.1", 5));
  EXPECT_FALSE(matches("10.0.0.1", "10.0.0.2", 5));
  EXPECT_TRUE(matches(":5", "10.0.0.2", 5));
  EXPECT_FALSE(matches(":5", "10.0.0.2", 6));
  EXPECT_TRUE(matches("[fd00::1]:5", "fd00::1", 5));
  EXPECT_FALSE(matches("[fd00::1]:5", "fd00::1", 6));
  EXPECT_TRUE(matches("fd00::1", "fd00::1", 6));
}

TEST(FaultsParseTest, TextIsWhatWasWritten) {
  EXPECT_EQ(Parsed("  cut   after=1s  ; reset # why").faults[0].text, "cut   after=1s");
  EXPECT_EQ(Parsed("  cut   after=1s  ; reset # why").faults[1].text, "reset");
}

TEST(FaultsParseTest, RefusalsShowThePlaceAndWhatWasExpected) {
  EXPECT_EQ(Refusal("cutt after=1s"), "\"cutt\" is not a kind of fault; did you mean cut?\n  cutt after=1s\n  ^");
  EXPECT_EQ(Refusal("cut afer=1s"), "\"afer\" is not a key of cut; did you mean after?\n  cut afer=1s\n      ^");
  EXPECT_EQ(Refusal("reset; delay time=5"),
            "\"5\" is not a value for time=; expected a time with its unit: 250us, 5ms, 2s, 1m\n  reset; delay time=5\n                    ^");
  // The line at fault, of several.
  EXPECT_EQ(Refusal("reset\ncut nth=0\nrnr"), "\"0\" is not a value for nth=; expected a whole number from 1\n  cut nth=0\n          ^");
  EXPECT_EQ(Refusal("delay"), "delay needs time=TIME: The duration: 250us, 5ms, 2s, 1m.\n  delay\n       ^");
}

TEST(FaultsParseTest, RefusesWhatMakesNoSense) {
  for (const char* text :
       {"cut=1", "cut after", "cut after=", "cut after=1s after=2s", "cut status=GENERAL_ERR", "cut nth=1 every=2", "delay time=1ms jitter=2ms",
        "cut nth=-1", "cut nth=1.5", "cut nth=99999999999999999999999", "cut probability=2", "cut probability=101%", "cut after_bytes=10X",
        "cut after=999999999999h", "bandwidth rate=10", "bandwidth rate=0bit", "completion status=SUCCESS", "completion opcode=SEND",
        "fail call=ibv_reg_mr", "fail call=close errno=EIO", "fail call=ibv_reg_mr errno=0", "fail call=ibv_reg_mr errno=ENOTHING",
        "fail call=ibv_reg_mr errno=EIO qp=2", "cut qp=0x1000000", "cut qp=x", "cut peer=", "cut peer=nowhere", "cut peer=1.2.3.4:0",
        "cut peer=1.2.3.4:70000", "cut peer=[::1", "cut peer=[::1]5", "cut peer=:", "cm_event event=ESTABLISHED", "seed=x", "seed=1 cut",
        "seed", "port_down times=2", "slow_progress time=1s qp=1", "after=1s", "=", "cut =1", "cut ,", "completion status= opcode=SEND"}) {
    const std::string refusal = Refusal(text);
    EXPECT_NE(refusal.find('^'), refusal.npos) << text;
  }
}

TEST(FaultsParseTest, CaretStaysBelowItsPlaceInLongAndOddLines) {
  const std::string text = std::string(500, ' ') + "\tnonsense\x01 " + std::string(500, 'x');
  const std::string refusal = Refusal(text);
  const size_t line = refusal.find("\n  "), caret = refusal.rfind('^');
  const size_t caret_line = refusal.rfind('\n');
  ASSERT_NE(line, refusal.npos);
  EXPECT_EQ(refusal[line + 1 + (caret - caret_line - 1)], 'n');
  EXPECT_LT(refusal.size(), 1000u);
}

TEST(FaultsSettingTest, ReadsFilesAndNamesThem) {
  const std::string name = testing::TempDir() + "/faults.txt";
  std::ofstream(name) << "# two\ncut after=1s\n\nreset\n";
  auto plan = ParseSetting("@" + name);
  ASSERT_TRUE(plan.ok()) << plan.error();
  EXPECT_EQ(plan->faults.size(), 2u);
  std::ofstream(name) << "cut\nrest\n";
  plan = ParseSetting("@" + name);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().substr(0, name.size() + 3), name + ":2:");
  plan = ParseSetting("@/no/such/file");
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().find("/no/such/file"), std::string::npos);
  EXPECT_FALSE(ParseSetting("@" + testing::TempDir()).ok());
}

}  // namespace
}  // namespace weft::faults
