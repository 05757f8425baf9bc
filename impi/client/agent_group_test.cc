#include "impi/client/agent_group.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <limits>

namespace weft::impi {
namespace {

using Stage = AgentGroup::Stage;

HereReport At(const char* address, uint16_t port) { return {HostIdOfIpv4(inet_addr(address)), port, "@agent-" + std::to_string(port)}; }

class ImpiAgentGroup : public ::testing::Test {
 protected:
  void Say(size_t agent, const Command& command, size_t step = std::numeric_limits<size_t>::max()) {
    const Bytes bytes = command.Serialize();
    for (size_t at = 0; at < bytes.size(); at += std::min(step, bytes.size() - at)) {
      group.OnBytes(agent, ByteSpan(bytes).subspan(at, std::min(step, bytes.size() - at)));
    }
  }
  std::vector<Command> Heard(size_t agent) {
    CommandReader reader(kLongestOrder);
    reader.Append(group.TakeOutput(agent));
    std::vector<Command> commands;
    while (auto command = reader.NextCommand()) commands.push_back(*std::move(command));
    EXPECT_EQ(reader.waiting(), 0u);
    return commands;
  }
  void Place() {
    Say(1, At("192.0.2.8", 5001).ToCommand());
    Say(0, At("192.0.2.7", 5000).ToCommand(), 1);
  }
  void Run() {
    Place();
    group.Begin(HostRank(3), welcome);
    for (size_t agent = 0; agent < 2; ++agent) {
      Heard(agent);
      Say(agent, {kConnectedCommand, {}});
    }
  }

  const Bytes welcome = SerializedWelcome();
  AgentGroup group{ClientRank(1), {"a", "b"}};

 private:
  static Bytes SerializedWelcome() { return Command{static_cast<CommandCode>(0x574C434D), Bytes(100, 7)}.Serialize(); }
};

TEST_F(ImpiAgentGroup, ReportsAndOrdersComeBackAsTheyWere) {
  const HereReport here = At("192.0.2.7", 65535);
  EXPECT_EQ(HereReport::From(here.ToCommand()), here);
  for (const bool by_process : {false, true}) {
    const FailReport fail{by_process, "rank 3 ended"};
    EXPECT_EQ(FailReport::From(fail.ToCommand()), fail);
  }
  const WorkOrder work{HostRank(5), welcome};
  EXPECT_EQ(WorkOrder::From(work.ToCommand()), work);
  EXPECT_EQ(TextOf(CommandOfText(kWarnCommand, "a stranger")), "a stranger");
}

TEST_F(ImpiAgentGroup, ReportsOfAnotherFormAreNone) {
  Command here = At("192.0.2.7", 5000).ToCommand();
  here.payload.resize(19);
  EXPECT_EQ(HereReport::From(here), std::nullopt);
  EXPECT_EQ(HereReport::From(At("192.0.2.7", 0).ToCommand()), std::nullopt);
  EXPECT_EQ(FailReport::From({kFailCommand, {0, 0, 0}}), std::nullopt);
  EXPECT_EQ(FailReport::From({kFailCommand, {0, 0, 0, 2}}), std::nullopt);
  EXPECT_EQ(WorkOrder::From({kWorkCommand, Bytes(11)}), std::nullopt);
  EXPECT_EQ(WorkOrder::From({kHereCommand, Bytes(12)}), std::nullopt);
}

TEST_F(ImpiAgentGroup, TheSlowestAgentIsTheStageOfAll) {
  EXPECT_EQ(group.stage(), Stage::kStarting);
  Say(1, At("192.0.2.8", 5001).ToCommand());
  EXPECT_EQ(group.stage(), Stage::kStarting);
  EXPECT_EQ(group.MissingHost(), "host 'a' of client 1");
  Say(0, At("192.0.2.7", 5000).ToCommand(), 1);
  EXPECT_EQ(group.stage(), Stage::kPlaced);
  EXPECT_EQ(group.places()[0], At("192.0.2.7", 5000));
  EXPECT_EQ(group.places()[1], At("192.0.2.8", 5001));
  group.Begin(HostRank(3), welcome);
  EXPECT_EQ(group.stage(), Stage::kConnecting);
  for (size_t agent = 0; agent < 2; ++agent) {
    const auto heard = Heard(agent);
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(WorkOrder::From(heard[0]), (WorkOrder{HostRank(3 + static_cast<int32_t>(agent)), welcome}));
    Say(agent, {kConnectedCommand, {}});
    EXPECT_EQ(group.stage(), agent == 0 ? Stage::kConnecting : Stage::kRunning);
  }
  Say(1, {kOverCommand, {}});
  EXPECT_EQ(group.stage(), Stage::kRunning);
  Say(0, {kOverCommand, {}});
  EXPECT_EQ(group.stage(), Stage::kEnded);
  group.OnClosed(1);
  EXPECT_EQ(group.stage(), Stage::kEnded) << "it is not needed any more";
  group.Quit();
  EXPECT_EQ(Heard(0), (std::vector<Command>{{kQuitCommand, {}}}));
  EXPECT_TRUE(Heard(1).empty()) << "it has gone";
}

TEST_F(ImpiAgentGroup, TheEndOfTheRanksReachesAllAgents) {
  Run();
  group.OnRanksEnded(" ended without MPI_Init");
  group.CloseProcesses();
  for (size_t agent = 0; agent < 2; ++agent) {
    EXPECT_EQ(Heard(agent), (std::vector<Command>{CommandOfText(kGoneCommand, " ended without MPI_Init"), {kShutCommand, {}}}));
  }
}

TEST_F(ImpiAgentGroup, AnAgentThatEndsEarlyIsNamedAtEachStage) {
  const std::string end = " ended before the job did, or its host is lost; mpiexec's messages may say why";
  for (int stage = 0; stage < 4; ++stage) {
    AgentGroup one(ClientRank(1), {"a", "b"});
    const auto say = [&](size_t agent, const Command& command) { one.OnBytes(agent, command.Serialize()); };
    std::string name = "host 'b' of client 1";
    if (stage >= 1) {
      say(0, At("192.0.2.7", 5000).ToCommand());
      say(1, At("192.0.2.8", 5001).ToCommand());
      name += " (192.0.2.8)";
    }
    if (stage >= 2) {
      one.Begin(HostRank(3), welcome);
      name = "host 4 of client 1 (192.0.2.8, 'b')";
    }
    if (stage >= 3) say(1, {kConnectedCommand, {}});
    one.OnClosed(1);
    EXPECT_EQ(one.stage(), Stage::kFailed);
    EXPECT_TRUE(one.failed_here());
    EXPECT_EQ(one.reason(), "the agent of " + name + end);
  }
}

TEST_F(ImpiAgentGroup, TheFirstFailureOfTheClientCounts) {
  Run();
  Say(1, FailReport{false, "host 0 of client 0 left"}.ToCommand());
  Say(0, FailReport{false, "host 1 of client 0 left"}.ToCommand());
  EXPECT_EQ(group.stage(), Stage::kFailed);
  EXPECT_EQ(group.reason(), "host 0 of client 0 left");
  EXPECT_FALSE(group.failed_here());
  Say(0, FailReport{true, "rank 3 ended"}.ToCommand());
  EXPECT_EQ(group.reason(), "rank 3 ended") << "why the others left, perhaps";
  EXPECT_TRUE(group.failed_here());
  group.OnClosed(0);
  Say(1, FailReport{true, "rank 4 ended"}.ToCommand());
  EXPECT_EQ(group.reason(), "rank 3 ended");
}

TEST_F(ImpiAgentGroup, TheDeathForWhichMpiexecEndedTheRanksIsTheReason) {
  Run();
  Say(0, FailReport{true, "rank 3 ended"}.ToCommand());
  EXPECT_FALSE(group.AwaitsFirstDeath());
  group.OnFirstDeath(1);
  EXPECT_TRUE(group.AwaitsFirstDeath());
  EXPECT_EQ(group.reason(), "rank 3 ended") << "until more is known";
  Say(1, FailReport{true, "rank 4 ended"}.ToCommand());
  EXPECT_FALSE(group.AwaitsFirstDeath());
  EXPECT_EQ(group.reason(), "rank 4 ended");
  group.OnClosed(1);
  Say(1, FailReport{true, "rank 6 ended"}.ToCommand());
  EXPECT_EQ(group.reason(), "rank 4 ended");
  EXPECT_TRUE(group.failed_here());
}

TEST_F(ImpiAgentGroup, AFailureOfTheStartNamesTheHost) {
  Say(1, FailReport{true, "cannot listen for other clients"}.ToCommand());
  EXPECT_EQ(group.reason(), "host 'b' of client 1: cannot listen for other clients");
  EXPECT_TRUE(group.failed_here());
}

TEST_F(ImpiAgentGroup, WhatComesAfterQuitDoesNotCount) {
  Run();
  group.Quit();
  Say(0, FailReport{true, "rank 3 ended"}.ToCommand());
  group.OnClosed(1);
  EXPECT_EQ(group.stage(), Stage::kRunning);
}

TEST_F(ImpiAgentGroup, WarningsNameTheHost) {
  Say(1, CommandOfText(kWarnCommand, "192.0.2.9 is a stranger"));
  EXPECT_EQ(group.TakeWarnings(), std::vector<std::string>{"host 'b': 192.0.2.9 is a stranger"});
  EXPECT_TRUE(group.TakeWarnings().empty());
}

TEST_F(ImpiAgentGroup, EachCommandHasItsStage) {
  const Command commands[] = {At("192.0.2.7", 1).ToCommand(), {kConnectedCommand, {}}, {kOverCommand, {}}};
  for (size_t stage = 0; stage < 5; ++stage) {
    for (size_t sent = 0; sent < 3; ++sent) {
      AgentGroup one(ClientRank(1), {"a"});
      const auto say = [&](const Command& command) { one.OnBytes(0, command.Serialize()); };
      if (stage >= 1) say(commands[0]);
      if (stage >= 2) one.Begin(HostRank(0), welcome);
      if (stage >= 3) say(commands[1]);
      if (stage >= 4) say(commands[2]);
      ASSERT_NE(one.stage(), Stage::kFailed);
      say(commands[sent]);
      const bool fits = (sent == 0 && stage == 0) || (sent == 1 && stage == 2) || (sent == 2 && stage == 3);
      EXPECT_EQ(one.stage() == Stage::kFailed, !fits) << stage << " " << sent;
    }
  }
}

TEST_F(ImpiAgentGroup, ACommandThatIsTooLongFails) {
  group.OnBytes(0, Bytes{'W', 'A', 'R', 'N', 0x7f, 0xff, 0xff, 0xff});
  EXPECT_EQ(group.reason(), "the agent of host 'a' of client 1 sent a command of 2147483647 bytes; use one release of Weft on all hosts");
}

}  // namespace
}  // namespace weft::impi
