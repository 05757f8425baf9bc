#include "impi/job/colours.h"

#include <gtest/gtest.h>

#include "impi/job/testing/jobs.h"

namespace weft::impi {
namespace {

std::vector<WorldRank> Ranks(std::initializer_list<int> numbers) {
  std::vector<WorldRank> ranks;
  for (const int number : numbers) ranks.emplace_back(number);
  return ranks;
}

// The example of section 2.3.4: 3 hosts with 2 processes, 2 with 3, 2 with 4.
class ColoursTest : public ::testing::Test {
 protected:
  const Job job = testing::JobOf(testing::Announcements({{2, 2, 2}, {3, 3}, {4, 4}}), 1);
};

TEST_F(ColoursTest, OfTheWorldAreTheNumbersOfClientsAndHosts) {
  std::vector<WorldRank> world;
  for (int rank = 0; rank < 20; ++rank) world.emplace_back(rank);
  EXPECT_EQ(ColoursOf(job, world, WorldRank(0)), (Colours{3, 0, 7, 0}));
  EXPECT_EQ(ColoursOf(job, world, WorldRank(5)), (Colours{3, 0, 7, 2}));
  EXPECT_EQ(ColoursOf(job, world, WorldRank(6)), (Colours{3, 1, 7, 3}));
  EXPECT_EQ(ColoursOf(job, world, WorldRank(19)), (Colours{3, 2, 7, 6}));
}

TEST_F(ColoursTest, CountOnlyWhatIsInTheCommunicator) {
  EXPECT_EQ(ColoursOf(job, Ranks({9}), WorldRank(9)), (Colours{1, 0, 1, 0}));
  EXPECT_EQ(ColoursOf(job, Ranks({19, 3, 2, 5}), WorldRank(19)), (Colours{2, 1, 3, 2}));
  EXPECT_EQ(ColoursOf(job, Ranks({19, 3, 2, 5}), WorldRank(2)), (Colours{2, 0, 3, 0})) << "in the order of the hosts, whatever that of the ranks is";
}

// Hosts and processes need not be on one machine, and a host may have none.
TEST_F(ColoursTest, AHostWithoutProcessesIsInNoCommunicator) {
  const Job empty = testing::JobOf(testing::Announcements({{0, 1}, {1}}), 0);
  EXPECT_EQ(ColoursOf(empty, Ranks({0, 1}), WorldRank(1)), (Colours{2, 1, 2, 1}));
}

}  // namespace
}  // namespace weft::impi
