#include "pmi/slurm/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace weft::pmi::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Variables = std::map<std::string, std::string>;

Result<std::vector<HostSlots>, PmiError> Read(const Variables& variables) {
  return HostsOfAllocation([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables Job(const std::string& nodes, const std::string& tasks, const std::string& cpus) {
  return {{"SLURM_JOB_ID", "1"},
          {"SLURM_JOB_NODELIST", nodes},
          {"SLURM_TASKS_PER_NODE", tasks},
          {"SLURM_JOB_CPUS_PER_NODE", cpus}};
}

std::string ErrorOf(const Variables& variables) {
  const auto hosts = Read(variables);
  return hosts ? "no error" : hosts.error().message;
}

// The values that salloc and sbatch of Slurm 22.05 set.
TEST(Allocation, IsWhatSallocSays) {
  EXPECT_THAT(Read(Job("node[1-2]", "2(x2)", "2(x2)")).value(),
              ElementsAre(HostSlots{"node1", 2}, HostSlots{"node2", 2}));
  EXPECT_THAT(Read(Job("node[1-2]", "4,1", "4,1")).value(), ElementsAre(HostSlots{"node1", 4}, HostSlots{"node2", 1}));
  EXPECT_THAT(Read(Job("node1", "3", "6")).value(), ElementsAre(HostSlots{"node1", 3}));
  EXPECT_THAT(Read(Job("n[1-3],m", "2(x3),1", "8(x4)")).value(),
              ElementsAre(HostSlots{"n1", 2}, HostSlots{"n2", 2}, HostSlots{"n3", 2}, HostSlots{"m", 1}));
}

TEST(Allocation, IsAbsentOutsideOfSlurm) {
  EXPECT_THAT(Read({}).value(), IsEmpty());
  EXPECT_THAT(Read({{"SLURM_JOB_ID", "1"}}).value(), IsEmpty());
  EXPECT_THAT(Read({{"SLURM_JOB_NODELIST", "a"}}).value(), IsEmpty());
  EXPECT_THAT(Read({{"SLURM_JOB_ID", ""}, {"SLURM_JOB_NODELIST", ""}}).value(), IsEmpty());
}

// In `srun --pty sh` of a job on two nodes: the list is the job's, the tasks are the step's.
TEST(Allocation, InAStepOfFewerHostsGoesByProcessors) {
  EXPECT_THAT(Read(Job("node[1-2]", "1", "3,1")).value(), ElementsAre(HostSlots{"node1", 3}, HostSlots{"node2", 1}));
  Variables wide = Job("node[1-2]", "1", "8(x2)");
  wide["SLURM_CPUS_PER_TASK"] = "3";
  EXPECT_THAT(Read(wide).value(), ElementsAre(HostSlots{"node1", 2}, HostSlots{"node2", 2}));
  wide["SLURM_CPUS_PER_TASK"] = "16";
  EXPECT_THAT(Read(wide).value(), ElementsAre(HostSlots{"node1", 1}, HostSlots{"node2", 1}));
}

TEST(Allocation, ErrorsNameVariableAndValue) {
  EXPECT_THAT(ErrorOf(Job("node[1-", "1", "1")), HasSubstr("SLURM_JOB_NODELIST: in the list of hosts 'node[1-', "));
  EXPECT_THAT(ErrorOf(Job("a", "x", "1")),
              HasSubstr("SLURM_TASKS_PER_NODE: in the numbers 'x', 'x' is neither a number"));
  EXPECT_THAT(ErrorOf(Job("a,b", "1", "2,y")), HasSubstr("SLURM_JOB_CPUS_PER_NODE: in the numbers '2,y', 'y' is"));
  EXPECT_THAT(
      ErrorOf(Job("a,b", "1", "2")),
      HasSubstr(
          "SLURM_JOB_NODELIST=a,b names 2 hosts, but neither SLURM_TASKS_PER_NODE=1 nor SLURM_JOB_CPUS_PER_NODE=2"));
  EXPECT_THAT(ErrorOf(Job("a", "", "")), HasSubstr("names 1 host, but neither SLURM_TASKS_PER_NODE= nor"));
  Variables odd = Job("a,b", "1", "2(x2)");
  odd["SLURM_CPUS_PER_TASK"] = "0";
  EXPECT_THAT(ErrorOf(odd), HasSubstr("SLURM_CPUS_PER_TASK=0 is not a number of 1 or more"));
}

TEST(Counts, AreExpandedAndBounded) {
  EXPECT_THAT(ExpandCounts("2(x3),1,4(x1)").value(), ElementsAre(2, 2, 2, 1, 4));
  EXPECT_EQ(ExpandCounts("1(x65536)").value().size(), 65536u);
  for (const char* counts :
       {"", "0", "-1", "65537", "2(x0)", "2(x)", "2(x3", "2x3", "2(3)", "(x3)", "1,", ",1", "1(x65537)", "1(x65536),1",
        "2(x3)4", "1(x2147483647),1(x2147483647)", "2(x3)(x4)", " 1"}) {
    EXPECT_FALSE(ExpandCounts(counts).ok()) << counts;
  }
}

}  // namespace
}  // namespace weft::pmi::slurm
