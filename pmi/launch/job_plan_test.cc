#include "pmi/launch/job_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

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
  return MakePlan(options.value(), {"A=1", "B=2", "PMI_FD=3", "PMI_RANK=7", "MPI_LOCALRANKID=1", "WEFT_PMI=alone", "PWD=/here", "odd"}, "/here");
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
  EXPECT_EQ(plan.orders[1].universe_size, -1);
}

TEST(JobPlan, GivesEachHostItsOwnValueOfAVariable) {
  const auto parsed = ParseOptions({"-hosts", "x,y", "-n", "1", "a", ":", "-n", "1", "b"});
  ASSERT_TRUE(parsed);
  Options options = parsed.value();
  options.first_job_by_host = {"PLACE", {"one", "two"}};
  const JobPlan plan = MakePlan(options, {}, "/");
  ASSERT_EQ(plan.orders.size(), 2u);
  for (size_t program = 0; program < 2; ++program) {
    EXPECT_THAT(plan.orders[0].programs[program].environment, Contains("PLACE=one"));
    EXPECT_THAT(plan.orders[1].programs[program].environment, Contains("PLACE=two"));
  }
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
  EXPECT_THAT(environment, Not(Contains(StartsWith("WEFT_PMI"))));
  EXPECT_THAT(environment, Not(Contains(StartsWith("MPI_LOCAL"))));
}

TEST(JobPlan, VariablesOfTheFirstJobDoNotReachSpawnedRanks) {
  auto options = ParseOptions({"-n", "1", "a"});
  ASSERT_TRUE(options);
  options->first_job = {{"WEFT_IMPI_AGENT", "@this"}};
  const std::vector<std::string> own = {"WEFT_IMPI_AGENT=@another", "A=1"};
  const auto first = EnvironmentOf(MakePlan(*options, own, "/here"), 0);
  EXPECT_THAT(first, Contains("WEFT_IMPI_AGENT=@this"));
  EXPECT_THAT(first, Not(Contains("WEFT_IMPI_AGENT=@another")));
  ask::Spawn spawn;
  spawn.commands.emplace_back();
  spawn.commands[0].program = "b";
  spawn.commands[0].processes = 1;
  const auto spawned = MakeSpawnPlan(spawn, *options, own, "/here", 1, "kvs");
  ASSERT_TRUE(spawned);
  EXPECT_THAT(EnvironmentOf(*spawned, 0), Contains("A=1"));
  EXPECT_THAT(EnvironmentOf(*spawned, 0), Not(Contains(StartsWith("WEFT_IMPI_AGENT"))));
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

Result<JobPlan, PmiError> SpawnPlan(const std::vector<SpawnCommand>& commands, const std::string& line = "-usize 9 a") {
  std::istringstream stream(line);
  const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  return MakeSpawnPlan({commands, {{"k", "v"}}}, ParseOptions(words).value(), {"A=1", "PMI_FD=3"}, "/here", 2, "kvs_0");
}

TEST(SpawnPlan, IsAJobOfItsOwn) {
  const auto plan = SpawnPlan({{"./a", {"x y"}, 2, {}}, {"b", {}, 1, {{"wdir", "/tmp"}, {"path", "/opt:/bin"}, {"unknown", "z"}}}});
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->orders.size(), 1u);
  const StartOrder& order = plan->orders[0];
  EXPECT_EQ(order.job_size, 3);
  EXPECT_EQ(order.universe_size, 9);
  EXPECT_EQ(order.spawner, "kvs_0");
  EXPECT_THAT(order.kvs_name, testing::HasSubstr("_2_"));
  EXPECT_THAT(order.values, ElementsAre(Pair("PMI_process_mapping", "(vector,(0,1,3))"), Pair("weft_spawner", "kvs_0"), Pair("k", "v")));
  EXPECT_THAT(order.programs[0].arguments, ElementsAre("./a", "x y"));
  EXPECT_EQ(order.programs[0].directory, "/here");
  EXPECT_EQ(order.programs[1].directory, "/tmp");
  EXPECT_EQ(order.programs[1].search_path, "/opt:/bin");
  EXPECT_THAT(order.programs[0].environment, Not(Contains(StartsWith("PMI_"))));
  EXPECT_THAT(plan->errors, ElementsAre(0, 0, 0));
  EXPECT_TRUE(plan->notes.empty());
}

TEST(SpawnPlan, EachProgramHasItsHosts) {
  const auto plan = SpawnPlan({{"a", {}, 2, {{"host", "one,two"}}}, {"b", {}, 3, {{"hosts", "two:2,three"}}}, {"c", {}, 1, {}}}, "-hosts four a");
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->placement.hosts, ElementsAre("one", "two", "three", "four"));
  EXPECT_THAT(plan->placement.host_of_rank, ElementsAre(0, 1, 1, 1, 2, 3));
  EXPECT_THAT(plan->program_of_rank, ElementsAre(0, 0, 1, 1, 1, 2));
}

TEST(SpawnPlan, SaysWhatItIgnoresAndWhatIsWrong) {
  const auto plan = SpawnPlan({{"a", {}, 1, {{"file", "more"}, {"arch", "m68k"}}}});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->notes, ElementsAre("the info key file=more of a spawn of a is ignored",
                                       "the info key arch=m68k of a spawn of a is ignored"));
  const auto error = [](const SpawnCommand& command) { return SpawnPlan({command}).error().message; };
  EXPECT_EQ(error({"a", {}, 0, {}}), "a spawn of no process");
  EXPECT_EQ(error({"", {}, 1, {}}), "the name of a program is empty");
  EXPECT_THAT(error({"a", {}, 1, {{"host", "-x"}}}), StartsWith("info key host: '-x' is not a host name"));
  EXPECT_THAT(error({"a", {}, 1, {{"hostfile", "/nonexistent"}}}), StartsWith("info key hostfile: cannot read the host file /nonexistent"));
  // It is read where mpiexec's loop stands still meanwhile.
  const std::string fifo = ::testing::TempDir() + "hosts_fifo";
  unlink(fifo.c_str());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(error({"a", {}, 1, {{"hostfile", fifo}}}), "info key hostfile: cannot read the host file " + fifo + ": it is a pipe, not a file");
  EXPECT_THAT(error({"a", {}, 1, {{"soft", "2:x"}}}), StartsWith("info key soft: '2:x' is not a number"));
}

TEST(SpawnPlan, SoftTakesTheLargestNumberThatItAllows) {
  const auto count = [](const char* soft, int most) { return SoftCount(soft, most).ok() ? SoftCount(soft, most).value() : -1; };
  EXPECT_EQ(count("4", 4), 4);
  EXPECT_EQ(count("4", 3), -1);
  EXPECT_EQ(count("1:10", 7), 7);
  EXPECT_EQ(count("1:10:4", 8), 5);
  EXPECT_EQ(count("1:10:4", 100), 9);
  EXPECT_EQ(count("10:1:-4", 9), 6);
  EXPECT_EQ(count("10:1:-4", 1), -1);
  EXPECT_EQ(count("10:1", 20), -1);
  EXPECT_EQ(count("0,16,2:5", 12), 5);
  EXPECT_EQ(count("-5:-1,3", 8), 3);
  EXPECT_EQ(count("-5:0", 8), 0);
  for (const char* wrong : {"", "x", "1:", "1:2:0", "1:2:3:4", "1,,2", "99999999999"}) EXPECT_EQ(count(wrong, 8), -1) << wrong;
  const auto plan = SpawnPlan({{"a", {}, 4, {{"soft", "1:3:2"}}}});
  EXPECT_EQ(plan->size(), 3);
  EXPECT_THAT(plan->errors, ElementsAre(0, 0, 0, 1));
}

}  // namespace
}  // namespace weft::pmi
