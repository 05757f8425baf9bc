#include "mpi_hybrid/core/job_version.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/version.h"
#include "mpi_hybrid/core/testing/fake_pmi.h"

namespace weft::mpi {
namespace {

// What each rank of a job finds whose ranks have these versions; "": it publishes none, and does not compare.
std::vector<std::string> FoundBy(const std::vector<std::string>& versions) {
  testing::PmiSpace space;
  std::vector<Job> jobs(versions.size());
  for (size_t rank = 0; rank < jobs.size(); ++rank) {
    jobs[rank].rank = static_cast<int>(rank);
    jobs[rank].size = static_cast<int>(jobs.size());
    jobs[rank].pmi = std::make_unique<testing::FakePmi>(space, jobs[rank].rank, jobs[rank].size);
    const testing::PmiSpace before = space;
    EXPECT_TRUE(PublishVersion(jobs[rank]).ok());
    for (auto& [key, value] : space) {
      if (!before.contains(key) && versions[rank] != Version()) value = versions[rank];
    }
    if (versions[rank].empty()) space = before;
  }
  std::vector<std::string> found;
  for (size_t rank = 0; rank < jobs.size(); ++rank) {
    if (versions[rank] == Version()) found.push_back(CompareVersion(jobs[rank]).message());
  }
  return found;
}

const std::string kOwn(Version());

TEST(JobVersionTest, RanksOfOneVersionAgree) {
  for (size_t ranks = 2; ranks < 6; ++ranks)
    EXPECT_EQ(FoundBy(std::vector<std::string>(ranks, kOwn)), std::vector<std::string>(ranks)) << ranks;
}

TEST(JobVersionTest, ARankOfAnotherVersionIsNamedWithBothVersions) {
  const std::string named = "rank 1 runs Weft 1.2.3, and this rank Weft " + kOwn + "; all ranks of a job need the same version";
  EXPECT_EQ(FoundBy({kOwn, "1.2.3"}), std::vector{named});
}

TEST(JobVersionTest, ARankWithoutAVersionIsNamed) {
  const std::vector<std::string> found = FoundBy({kOwn, ""});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with("rank 1 runs an older Weft than this rank (" + kOwn + ")")) << found[0];
}

TEST(JobVersionTest, WhereverTheOtherVersionIsOneRankFindsIt) {
  for (const std::string other : {"", "1.2.3"}) {
    for (unsigned others = 1; others < (1u << 4) - 1; ++others) {
      std::vector<std::string> versions;
      for (unsigned rank = 0; rank < 4; ++rank) versions.push_back((others >> rank & 1) != 0 ? other : kOwn);
      std::string found;
      for (const std::string& message : FoundBy(versions)) found += message;
      EXPECT_NE(found, "") << others;
    }
  }
}

}  // namespace
}  // namespace weft::mpi
