#include "mpi_hybrid/p2p/impi/enter_job.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <string>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "base/job_secret.h"
#include "impi/entry/welcome.h"
#include "impi/job/ranks.h"
#include "impi/job/testing/jobs.h"
#include "impi/wire/command.h"
#include "mpi_hybrid/core/impi_world.h"

namespace weft::mpi {
namespace {

// Client 1 of two has rank 2 on its first host, and the ranks 0 and 1 on its second.
class EnterJobTest : public ::testing::Test {
 protected:
  void Begin(int size) {
    job_.rank = 1;
    job_.size = size;
    job_.processes.Start(JobSecret::Random(), job_.rank, size);
  }
  static impi::Welcome Welcome() {
    const auto told = impi::testing::Tell(impi::testing::Announcements({{2}, {1, 2}}));
    const auto command = impi::Welcome::Serialize(impi::ClientRank(1), 2, told, {2, 0, 1}, /*lam_clients=*/1);
    auto welcome = impi::Welcome::Parse(ByteSpan(command).subspan(impi::Command::kHeader), /*rank=*/1);
    EXPECT_TRUE(welcome.ok()) << welcome.error();
    return std::move(welcome).value();
  }
  Job job_;
};

TEST_F(EnterJobTest, RanksOfTheClientStandInTheCommonWorldAsTheAgentSays) {
  Begin(3);
  const Error error = EnterImpiJob(job_, Descriptor(), Welcome());
  ASSERT_TRUE(error.ok()) << error.message();
  EXPECT_EQ(job_.impi->self(), impi::WorldRank(4));
  EXPECT_EQ(job_.impi->processes(), (std::vector<ProcessId>{3, 4, 2, 0, 1}));
  EXPECT_TRUE(job_.impi->IsLam(impi::ClientRank(0)));
  EXPECT_FALSE(job_.impi->IsLam(impi::ClientRank(1)));
}

TEST_F(EnterJobTest, AnotherNumberOfProcessesThanTheLaunchersIsAnError) {
  Begin(4);
  const Error error = EnterImpiJob(job_, Descriptor(), Welcome());
  EXPECT_EQ(error.mpi_class(), MPI_ERR_OTHER);
  EXPECT_EQ(error.message(),
            "entering the IMPI job: this client has 3 processes in it, and the launcher started 4; does the program start MPI programs with a launcher of their own?");
  EXPECT_EQ(job_.impi, nullptr);
}

}  // namespace
}  // namespace weft::mpi
