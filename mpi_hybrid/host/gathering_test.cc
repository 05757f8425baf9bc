#include "mpi_hybrid/host/gathering.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/hex.h"
#include "base/job_secret.h"
#include "mpi_hybrid/host/abstract_name.h"
#include "mpi_hybrid/p2p/testing/fake_pmi.h"

namespace weft::mpi::host {
namespace {

using testing::FillLoopbackJob;
using testing::PmiSpace;

// The ranks of a job on one host, all in this process.
class GatheringTest : public ::testing::Test {
 protected:
  void Make(int size) {
    for (int rank = 0; rank < size; ++rank) {
      FillLoopbackJob(jobs_.emplace_back(), rank, size, space_);
      jobs_.back().ranks_here.clear();
      for (int other = 0; other < size; ++other) jobs_.back().ranks_here.push_back(other);
    }
    for (Job& job : jobs_) gatherings_.push_back(std::make_unique<Gathering>(job, job.ranks_here));
    for (auto& gathering : gatherings_) gathering->Begin();
  }
  void Join() {
    for (auto& gathering : gatherings_) {
      std::string why;
      segments_.push_back(gathering->Join(&why));
      whys_.push_back(why);
    }
    for (auto& segment : segments_) {
      if (segment != nullptr) segment->Settle();
    }
  }
  // A connection to the host; what it says first is in challenge_.
  Descriptor Visit() {
    Nonce name{};
    EXPECT_TRUE(ParseHex(space_.at("weft-segment-0"), name));
    const AbstractName address("weft-segment-", name);
    Descriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(made.get(), address.get(), address.length), 0);
    EXPECT_EQ(recv(made.get(), challenge_.data(), challenge_.size(), 0), 16);
    return made;
  }

  PmiSpace space_;
  std::deque<Job> jobs_;
  std::vector<std::unique_ptr<Gathering>> gatherings_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<std::string> whys_;
  Nonce challenge_{};
};

TEST_F(GatheringTest, AllRanksOfAHostHaveItsMemory) {
  Make(5);
  Join();
  for (size_t rank = 0; rank < 5; ++rank) {
    ASSERT_NE(segments_[rank], nullptr) << whys_[rank];
    for (int other = 0; other < 5; ++other) EXPECT_EQ(segments_[rank]->PlaceOf(other), other);
    segments_[rank]->OfPlace(static_cast<int>(rank))[5] = static_cast<uint8_t>(40 + rank);
  }
  for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(segments_[0]->OfPlace(rank)[5], 40 + rank);
}

TEST_F(GatheringTest, WhoDoesNotKnowTheSecretOrIsNotOfThisHostGetsNothing) {
  Make(3);
  // Nobody knows the second's secret; the first does not take the third to be here.
  jobs_[1].processes.Start(JobSecret::Random(), 1, 3);
  gatherings_[0] = std::make_unique<Gathering>(jobs_[0], std::vector{0, 1});
  gatherings_[0]->Begin();
  Join();
  EXPECT_NE(segments_[0], nullptr);
  EXPECT_EQ(segments_[1], nullptr);
  EXPECT_EQ(segments_[2], nullptr);
  EXPECT_FALSE(segments_[0]->has_company());
}

TEST_F(GatheringTest, StrangersKeepNobodyOut) {
  Make(3);
  std::string why;
  auto first = gatherings_[0]->Join(&why);
  ASSERT_NE(first, nullptr) << why;
  std::vector<Descriptor> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(Visit());
  const Descriptor loud = Visit();
  EXPECT_GT(send(loud.get(), "give me the memory", 18, MSG_NOSIGNAL), 0);
  uint8_t bytes[100];
  EXPECT_LE(recv(loud.get(), bytes, sizeof(bytes), 0), 0) << "it is let go";
  for (size_t rank : {1, 2}) EXPECT_NE(gatherings_[rank]->Join(&why), nullptr) << why;
}

TEST_F(GatheringTest, WithoutAHostThatHasMemoryTheRestIsToldWhy) {
  Make(2);
  space_.erase("weft-segment-0");
  std::string why;
  EXPECT_EQ(gatherings_[1]->Join(&why), nullptr);
  EXPECT_EQ(why, "rank 0 has made none");
  space_["weft-segment-0"] = HexOf(NewNonce());
  EXPECT_EQ(gatherings_[1]->Join(&why), nullptr) << "nobody listens there";
  space_["weft-segment-0"] = "nonsense";
  EXPECT_EQ(gatherings_[1]->Join(&why), nullptr);
}

TEST_F(GatheringTest, OutOfDescriptorsThereIsNoSegmentAndTheHostGoesOn) {
  Make(2);
  std::string why;
  const auto first = gatherings_[0]->Join(&why);
  ASSERT_NE(first, nullptr) << why;
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  few.rlim_cur = 3;
  setrlimit(RLIMIT_NOFILE, &few);
  EXPECT_EQ(gatherings_[1]->Join(&why), nullptr);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_NE(why.find("open files"), std::string::npos) << why;
  EXPECT_NE(gatherings_[1]->Join(&why), nullptr) << why;
}

}  // namespace
}  // namespace weft::mpi::host
