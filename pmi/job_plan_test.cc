#include "pmi/job_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace weft::pmi {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

JobPlan Plan(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  const auto options = ParseOptions(words);
  EXPECT_TRUE(options) << options.error().message;
  return MakePlan(options.value(), {"A=1", "B=2", "PMI_FD=3", "PMI_RANK=7", "MPI_LOCALRANKID=1", "PWD=/here", "odd"}, "/here");
}

const std::vector<std::string>& EnvironmentOf(const JobPlan& plan, size_t program) {
  return plan.orders[0].programs[program].environment;
}

TEST(JobPlan, GivesEachHostItsRanks) {
  const JobPlan plan = Plan("-hosts x:2,y -n 4 a : -n 1 b");
  ASSERT_EQ(plan.orders.size(), 2u);
  using Rank = StartOrder::Rank;
  EXPECT_THAT(plan.orders[0].ranks, ElementsAre(Rank{0, 0}, Rank{1, 0}, Rank{3, 0}, Rank{4, 1}));
  EXPECT_THAT(plan.orders[1].ranks, ElementsAre(Rank{2, 0}));
  EXPECT_EQ(plan.orders[1].job_size, 5);
  EXPECT_EQ(plan.orders[1].universe_size, 5);
}

TEST(JobPlan, PutsTheMappingIntoTheKeyValueSpaceAndTheSecretIntoNothing) {
  const JobPlan plan = Plan("-n 2 a");
  EXPECT_EQ(plan.orders[0].Serialize().find("weft_secret"), std::string::npos);
  EXPECT_THAT(plan.orders[0].values, Contains(Pair("PMI_process_mapping", "(vector,(0,1,1))")));
}

TEST(JobPlan, PassesTheEnvironmentButNotAnotherLaunchersVariables) {
  const auto environment = EnvironmentOf(Plan("-n 1 a"), 0);
  EXPECT_THAT(environment, Contains("A=1"));
  EXPECT_THAT(environment, Contains("PWD=/here"));
  EXPECT_THAT(environment, Not(Contains(StartsWith("PMI_"))));
  EXPECT_THAT(environment, Not(Contains(StartsWith("MPI_LOCAL"))));
}

TEST(JobPlan, SetsVariablesForAllAndForOne) {
  const JobPlan plan = Plan("-genv A 5 -env B 6 a : b");
  EXPECT_THAT(EnvironmentOf(plan, 0), Contains("A=5"));
  EXPECT_THAT(EnvironmentOf(plan, 0), Contains("B=6"));
  EXPECT_THAT(EnvironmentOf(plan, 1), Contains("A=5"));
  EXPECT_THAT(EnvironmentOf(plan, 1), Contains("B=2"));
}

TEST(JobPlan, PassesOnlyWhatIsListed) {
  EXPECT_THAT(EnvironmentOf(Plan("-genvlist B,C a"), 0), ElementsAre("B=2", "GFORTRAN_UNBUFFERED_PRECONNECTED=y"));
  EXPECT_THAT(EnvironmentOf(Plan("-genvnone -genv C 3 a"), 0), ElementsAre("C=3", "GFORTRAN_UNBUFFERED_PRECONNECTED=y"));
  const JobPlan plan = Plan("-genvnone a : -envall b");
  EXPECT_THAT(EnvironmentOf(plan, 1), Contains("A=1")) << "a program's own choice goes before that for all";
}

TEST(JobPlan, WorkingDirectoriesAreAbsolute) {
  const JobPlan plan = Plan("-wdir /tmp a : -wdir sub b : c");
  EXPECT_EQ(plan.orders[0].programs[0].directory, "/tmp");
  EXPECT_EQ(plan.orders[0].programs[1].directory, "/here/sub");
  EXPECT_EQ(plan.orders[0].programs[2].directory, "/here");
  EXPECT_THAT(EnvironmentOf(plan, 0), Contains("PWD=/tmp"));
}

}  // namespace
}  // namespace weft::pmi
