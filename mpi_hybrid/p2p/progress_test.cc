#include "mpi_hybrid/p2p/progress.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/p2p/message.h"

namespace weft::mpi {
namespace {

// A job of one, with threads.
class ProgressTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Job& job = ThisJob();
    job.rank = 0;
    job.size = 1;
    MakeWorld(0, 1);
    LockGuard lock;
    LibraryLock::EnableThreads();
    ASSERT_TRUE(StartDevice().ok());
  }
};

TEST_F(ProgressTest, ThreadsThatWaitForEachOtherAllGoOn) {
  constexpr int kPairs = 3, kRounds = 300;
  std::vector<std::thread> threads;
  for (int pair = 0; pair < kPairs; ++pair) {
    for (int side = 0; side < 2; ++side) {
      threads.emplace_back([=] {
        const Datatype& type = *Datatype::Find(MPI_INT);
        for (int round = 0; round < kRounds; ++round) {
          for (int turn = 0; turn < 2; ++turn) {
            LockGuard lock;
            if (turn == side) {
              const SendMode mode = round % 3 ? SendMode::kStandard : SendMode::kSynchronous;
              ASSERT_TRUE(Send(&round, 1, type, 0, 2 * pair + turn, World(), mode, Channel::kPointToPoint).ok());
            } else {
              int got = -1;
              MPI_Status status;
              ASSERT_TRUE(Receive(&got, 1, type, MPI_ANY_SOURCE, 2 * pair + turn, World(), Channel::kPointToPoint, &status).ok());
              ASSERT_EQ(got, round);
            }
          }
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ProgressTest, NewsFromOutsideTheLockEndASleep) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<bool> news{false};
    std::thread outside([&] {
      if (round % 4) std::this_thread::sleep_for(std::chrono::microseconds(round * 10));
      news = true;
      Progress::WakeFromOutside();
    });
    {
      LockGuard lock;
      Progress::WaitUntil([&] { return news.load(); });
    }
    outside.join();
  }
}

// A stage whose news come by a descriptor is armed before the sleep.
class CountingStage : public ProgressStage {
 public:
  bool Poll() override { return false; }
  bool Arm() override {
    ++armed;
    return armed > 3;
  }
  int fd() const override { return -1; }
  std::atomic<int> armed{0};
};

// Polls without news.
class QuietStage : public ProgressStage {
 public:
  bool Poll() override {
    ++polls;
    return false;
  }
  bool Arm() override {
    ++sleeps;
    return true;
  }
  int fd() const override { return -1; }
  int polls = 0, sleeps = 0;
};

TEST_F(ProgressTest, AWaitThatGoesOnAfterItsTimeSleepsAtOnceAndThroughout) {
  LockGuard lock;
  QuietStage stage;
  Progress::AddStage(&stage);
  const auto never = [] { return false; };
  const auto soon = [] { return std::chrono::steady_clock::now() + std::chrono::milliseconds(5); };
  constexpr int kTimes = 10;
  Progress::WaitUntil(never, soon());
  stage.polls = stage.sleeps = 0;
  for (int i = 0; i < kTimes; ++i) Progress::WaitUntil(never, soon(), Progress::Start::kSleeping);
  EXPECT_LE(stage.sleeps, kTimes + 2) << "the end of one must not end the next";
  EXPECT_LE(stage.polls, kTimes * 12);
  Progress::RemoveStage(&stage);
}

// Its descriptor ends each sleep at once.
class RestlessStage : public QuietStage {
 public:
  RestlessStage() : fd_(eventfd(1, EFD_CLOEXEC)) {}
  ~RestlessStage() override { close(fd_); }
  int fd() const override { return fd_; }

 private:
  const int fd_;
};

// Where other programs keep the processor it does not, and in a wait that they interrupt it sleeps seldom anyway: enough of the waits have it to themselves.
TEST_F(ProgressTest, AWaitWhoseSleepWasShortPollsForAsLongBeforeTheNext) {
  constexpr int kMilliseconds = 2, kEnough = 40, kMost = kMilliseconds * 5 + 2;  // sleeps: one in 200 us
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(40);  // beside a compiler, one wait in a hundred
  LockGuard lock;
  RestlessStage stage;
  Progress::AddStage(&stage);
  int few = 0;
  while (few < kEnough && std::chrono::steady_clock::now() < limit) {
    stage.sleeps = 0;
    Progress::WaitUntil([] { return false; }, std::chrono::steady_clock::now() + std::chrono::milliseconds(kMilliseconds));
    few += stage.sleeps > 1 && stage.sleeps <= kMost;  // one that does not sleep only spins
  }
  EXPECT_EQ(few, kEnough);
  Progress::RemoveStage(&stage);
}

TEST_F(ProgressTest, AWaitBesideAProgramThatComputesSleepsAtOnceAlsoAfterAShortSleep) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  std::atomic<bool> computes{true};
  std::thread program([&] {
    while (computes.load(std::memory_order_relaxed)) {
    }
  });
  {
    LockGuard lock;
    RestlessStage stage;
    Progress::AddStage(&stage);
    // The first one may have to find out.
    for (int i = 0; i < 2; ++i) {
      stage.polls = stage.sleeps = 0;
      Progress::WaitUntil([] { return false; }, std::chrono::steady_clock::now() + std::chrono::milliseconds(40));
    }
    EXPECT_GE(stage.sleeps * 5, stage.polls * 4 - 10);
    Progress::RemoveStage(&stage);
  }
  computes = false;
  program.join();
  sched_setaffinity(0, sizeof before, &before);
}

TEST_F(ProgressTest, AStageThatHasNewsKeepsTheWaitAwake) {
  CountingStage stage;
  {
    LockGuard lock;
    Progress::AddStage(&stage);
  }
  std::atomic<bool> done{false};
  std::thread outside([&] {
    while (stage.armed <= 3) std::this_thread::yield();
    done = true;
    Progress::WakeFromOutside();
  });
  {
    LockGuard lock;
    Progress::WaitUntil([&] { return done.load(); });
    Progress::RemoveStage(&stage);
  }
  outside.join();
  EXPECT_GT(stage.armed, 3);
}

}  // namespace
}  // namespace weft::mpi
