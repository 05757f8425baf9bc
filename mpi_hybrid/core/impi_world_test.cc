#include "mpi_hybrid/core/impi_world.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/job_secret.h"
#include "impi/job/testing/jobs.h"

namespace weft::mpi {
namespace {

using impi::WorldRank;

// Client 1 of three, with ranks 2, 3 and 4 of the common MPI_COMM_WORLD.
class ImpiWorldTest : public ::testing::Test {
 protected:
  void Make(std::vector<ProcessId> own) {
    table_.Start(JobSecret::Random(), /*rank=*/1, /*size=*/3);
    world_ = std::make_unique<ImpiWorld>(impi::testing::JobOf(impi::testing::Announcements({{1, 1}, {2, 1}, {1}}), 1), std::move(own), table_);
  }
  ProcessTable table_;
  std::unique_ptr<ImpiWorld> world_;
};

TEST_F(ImpiWorldTest, ListsOtherClientsBehindTheOwnJob) {
  Make({0, 1, 2});
  EXPECT_EQ(world_->processes(), (std::vector<ProcessId>{3, 4, 0, 1, 2, 5}));
  EXPECT_EQ(world_->self(), WorldRank(3));
  for (int rank = 0; rank < 6; ++rank) EXPECT_EQ(world_->RankOf(world_->ProcessOf(WorldRank(rank))), WorldRank(rank));
  for (const ProcessId process : {0, 1, 2}) EXPECT_FALSE(world_->IsForeign(process));
  for (const ProcessId process : {3, 4, 5}) EXPECT_TRUE(world_->IsForeign(process));
  EXPECT_FALSE(world_->IsForeign(6));  // perhaps of a job that connects later
  EXPECT_EQ(world_->ClientOf(1), impi::ClientRank(1));
  EXPECT_EQ(world_->ClientOf(5), impi::ClientRank(2));
  EXPECT_TRUE(world_->AnyForeign(std::vector<ProcessId>{0, 5}));
  EXPECT_FALSE(world_->AnyForeign(std::vector<ProcessId>{0, 2}));
}

TEST_F(ImpiWorldTest, TheLauncherMayHaveOtherRanksOnAHost) {
  Make({0, 2, 1});
  EXPECT_EQ(world_->processes(), (std::vector<ProcessId>{3, 4, 0, 2, 1, 5}));
  EXPECT_EQ(world_->self(), WorldRank(4));
}

TEST_F(ImpiWorldTest, ProcessesOfOtherClientsStayAndAreNamedByTheirClient) {
  Make({0, 1, 2});
  for (const ProcessId process : world_->processes()) {
    table_.Hold(process, 1);
    table_.Hold(process, -1);
  }
  EXPECT_FALSE(table_.has_parting());
  EXPECT_EQ(table_.Describe(5), "rank 5 (192.0.2.5/105) of client 2");
  EXPECT_EQ(table_.Describe(0), "rank 2 (192.0.2.3/102) of client 1");
}

TEST_F(ImpiWorldTest, CountsWhatElseIsOnItsMachine) {
  Make({0, 1, 2});
  EXPECT_EQ(world_->OthersOnMachine(), 1);  // the agent

  // The only host of client 2 is the host of ranks 3 and 4, in the other form of an IPv4 address.
  auto clients = impi::testing::Announcements({{1, 1}, {2, 1}, {3}});
  impi::HostAnnouncement& same = clients[2].hosts[0];
  same.address = clients[1].hosts[0].address;
  same.address[10] = same.address[11] = 0xff;
  for (impi::ProcessName& process : same.processes) process.host = same.address;
  ProcessTable table;
  table.Start(JobSecret::Random(), /*rank=*/0, /*size=*/3);
  EXPECT_EQ(ImpiWorld(impi::testing::JobOf(clients, 1), {0, 1, 2}, table).OthersOnMachine(), 1 + 1 + 3);
}

TEST_F(ImpiWorldTest, AProcessThatIsAloneOnItsHostIsItsAgent) {
  auto clients = impi::testing::Announcements({{1}, {1}});
  impi::HostAnnouncement& same = clients[1].hosts[0];
  same.address = clients[0].hosts[0].address;
  for (impi::ProcessName& process : same.processes) process.host = same.address;
  ProcessTable table;
  table.Start(JobSecret::Random(), /*rank=*/0, /*size=*/1);
  EXPECT_EQ(ImpiWorld(impi::testing::JobOf(clients, 0), {0}, table).OthersOnMachine(), 1) << "the other process";
}

TEST_F(ImpiWorldTest, ContextsFollowTheHighestThatAnyoneHasSeen) {
  Make({0, 1, 2});
  uint64_t context = 0;
  EXPECT_EQ(world_->seen_context(), 1U);
  ASSERT_TRUE(world_->TakeContext(1, &context).ok());
  EXPECT_EQ(context, 2U);
  EXPECT_EQ(world_->seen_context(), 3U);
  ASSERT_TRUE(world_->TakeContext(101, &context).ok());
  EXPECT_EQ(context, 102U);
  EXPECT_EQ(world_->seen_context(), 103U);
}

TEST_F(ImpiWorldTest, ContextsEndAtImpiMaxCid) {
  Make({0, 1, 2});
  uint64_t context = 0;
  ASSERT_TRUE(world_->TakeContext(ImpiWorld::kMostContext - 3, &context).ok());
  EXPECT_EQ(context, ImpiWorld::kMostContext - 2);
  const Error error = world_->TakeContext(ImpiWorld::kMostContext - 1, &context);
  EXPECT_EQ(error.mpi_class(), MPI_ERR_OTHER);
  EXPECT_NE(error.message().find("18446744073709551599"), std::string::npos) << error.message();
}

}  // namespace
}  // namespace weft::mpi
