#include "impi/run/ranks_process.h"

#include <gtest/gtest.h>

#include "pmi/launch/options.h"

namespace weft::impi {
namespace {

// Programs of this host in the place of ranks.
TEST(RanksProcessTest, TellsForWhichRankMpiexecEndedTheJob) {
  pmi::Options options;
  for (const char* words : {"sleep 1000", "sleep 1000", "kill -9 $$", "sleep 1000"}) {
    pmi::ProgramOptions& program = options.programs.emplace_back();
    program.ranks = 1;
    program.arguments = {"sh", "-c", words};
  }
  auto process = RanksProcess::Make(options);
  ASSERT_TRUE(process.ok()) << process.error();
  EXPECT_EQ(process->Start({"an agent"}), std::nullopt);
  EXPECT_EQ(process->Wait(), 128 + 9);
  EXPECT_EQ(process->last_gone(), 2);
}

}  // namespace
}  // namespace weft::impi
