#include "impi/run/agents_process.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <vector>

#include "pmi/launch/options.h"

namespace weft::impi {
namespace {

// Programs of this host in the place of agents on several.
pmi::Options OptionsOf(const std::vector<std::vector<std::string>>& programs) {
  pmi::Options options;
  for (const auto& words : programs) {
    pmi::ProgramOptions& program = options.programs.emplace_back();
    program.ranks = 1;
    program.arguments = words;
  }
  options.goes_on = true;
  return options;
}

TEST(AgentsProcessTest, TellsWhichAgentsHaveEndedWhileOthersRun) {
  for (const char* how : {"exit 3", "kill -9 $$"}) {
    auto process = AgentsProcess::Start(OptionsOf({{"sleep", "1000"}, {"sh", "-c", how}, {"sleep", "1000"}}));
    ASSERT_TRUE(process.ok()) << process.error();
    while (process->gone().empty()) {
      pollfd ready{process->fd(), POLLIN, 0};
      ASSERT_EQ(poll(&ready, 1, -1), 1);
      process->Look();
    }
    EXPECT_EQ(process->gone(), std::vector<int>{1}) << how;
    EXPECT_FALSE(process->exit_status()) << how;
    process->End(std::chrono::milliseconds(0));
    EXPECT_TRUE(process->exit_status()) << how;
  }
}

TEST(AgentsProcessTest, TellsItsExitStatus) {
  auto process = AgentsProcess::Start(OptionsOf({{"true"}, {"sh", "-c", "exit 3"}}));
  ASSERT_TRUE(process.ok()) << process.error();
  while (!process->exit_status()) {
    pollfd ready{process->fd(), POLLIN, 0};
    ASSERT_EQ(poll(&ready, 1, -1), 1);
    process->Look();
  }
  EXPECT_EQ(process->exit_status(), 3);
}

}  // namespace
}  // namespace weft::impi
