#include "mpi_hybrid/dynamic/beside.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <future>
#include <thread>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/progress.h"

namespace weft::mpi {
namespace {

// A job of one, with threads.
class BesideTest : public testing::Test {
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

TEST_F(BesideTest, OtherThreadsComeInWhileItBlocks) {
  std::promise<int> got;
  std::thread other([&] {
    LockGuard lock;
    const Datatype& type = *Datatype::Find(MPI_INT);
    const int value = 7;
    int received = 0;
    MPI_Status status;
    EXPECT_TRUE(Send(&value, 1, type, 0, 1, World(), SendMode::kStandard, Channel::kPointToPoint).ok());
    EXPECT_TRUE(Receive(&received, 1, type, 0, 1, World(), Channel::kPointToPoint, &status).ok());
    got.set_value(received);
  });
  int result = 0;
  {
    LockGuard lock;
    RunBeside([&] { result = got.get_future().get(); });
  }
  other.join();
  EXPECT_EQ(result, 7);
}

class Stage final : public ProgressStage {
 public:
  bool Poll() override {
    if (told_) return false;
    told_ = true;
    polled.set_value();
    return true;
  }
  bool Arm() override { return !Poll(); }
  int fd() const override { return -1; }

  std::promise<void> polled;

 private:
  bool told_ = false;
};

TEST_F(BesideTest, ProgressGoesOnWhileItBlocks) {
  Stage stage;
  LockGuard lock;
  Progress::AddStage(&stage);
  RunBeside([&] { stage.polled.get_future().wait(); });
  Progress::RemoveStage(&stage);
}

TEST_F(BesideTest, SignalsAreTheProgramsThreads) {
  sigset_t mask;
  LockGuard lock;
  RunBeside([&] { pthread_sigmask(SIG_SETMASK, nullptr, &mask); });
  EXPECT_TRUE(sigismember(&mask, SIGUSR1));
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_FALSE(sigismember(&mask, SIGUSR1));
}

}  // namespace
}  // namespace weft::mpi
