#include "mpi_hybrid/p2p/host_wait.h"

#include <gtest/gtest.h>

#include "mpi_hybrid/p2p/host_waits.h"

namespace weft::mpi {
namespace {

// The word that says that this process sleeps for others. Like that of a window, all of its waits share it.
class Wait final : public HostWait {
 public:
  explicit Wait(int& asleep) : asleep_(asleep) {}
  bool IsOver() const override { return over; }
  bool Arm() override {
    asleep_ = 1;
    return !over;
  }
  void Disarm() override { asleep_ = 0; }

  bool over = false;

 private:
  int& asleep_;
};

class HostWaitTest : public ::testing::Test {
 protected:
  HostWaits& waits_ = HostWaits::Get();
  int asleep_ = 0;
  Wait one_{asleep_}, other_{asleep_};
};

TEST_F(HostWaitTest, ASleepIsAnnouncedAndTakenBack) {
  const HostWait::Scope scope(one_);
  EXPECT_TRUE(waits_.Arm());
  EXPECT_EQ(asleep_, 1);
  waits_.OnAwake();
  EXPECT_EQ(asleep_, 0);
}

TEST_F(HostWaitTest, NobodySleepsWhoseWaitIsOverAndWasNotTold) {
  const HostWait::Scope scope(one_);
  one_.over = true;
  EXPECT_FALSE(waits_.Arm());
  waits_.OnAwake();
  EXPECT_TRUE(waits_.Poll());
  EXPECT_FALSE(waits_.Poll()) << "once";
  EXPECT_TRUE(waits_.Arm()) << "its thread is to have the lock";
  waits_.OnAwake();
}

TEST_F(HostWaitTest, AWaitThatGoesOnAgainIsToldAgain) {
  const HostWait::Scope scope(one_);
  one_.over = true;
  EXPECT_TRUE(waits_.Poll());
  one_.over = false;  // another took what it waits for
  EXPECT_FALSE(waits_.Poll());
  EXPECT_TRUE(waits_.Arm());
  EXPECT_EQ(asleep_, 1);
  waits_.OnAwake();
  one_.over = true;
  EXPECT_TRUE(waits_.Poll());
}

TEST_F(HostWaitTest, TheEndOfOneWaitHidesNoOtherThatSleepsForTheSameWord) {
  const HostWait::Scope scope(one_);
  {
    const HostWait::Scope ends(other_);
    EXPECT_TRUE(waits_.Arm());
  }
  EXPECT_EQ(asleep_, 1) << "who changes the word would not ring";
  waits_.OnAwake();
  EXPECT_EQ(asleep_, 0);
}

TEST_F(HostWaitTest, SpinningFindsWhatIsThere) {
  int looks = 0;
  EXPECT_TRUE(HostWait::Spin([&] { return ++looks == 1; }, std::chrono::microseconds(0)));
  EXPECT_FALSE(HostWait::Glance([] { return false; }));
  EXPECT_FALSE(HostWait::Spin([] { return false; }, std::chrono::microseconds(0)));
}

}  // namespace
}  // namespace weft::mpi
