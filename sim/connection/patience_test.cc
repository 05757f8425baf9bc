#include "sim/connection/patience.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <utility>

#include "sim/net/virtual_network.h"

namespace weft::sim {
namespace {

using std::chrono::seconds;

// Timers that a test fires, also those that were cancelled: theirs may wait for the engine already.
class HeldTimers final : public EngineTimers {
 public:
  transport::Network& network() const override { return network_; }
  transport::TimerId RunAfter(transport::Duration, std::function<void()> work) override {
    works_[++last_] = std::move(work);
    return last_;
  }
  void RunWhenFree(transport::Duration, transport::Duration, std::function<void()>) override { FAIL(); }
  void Fire(transport::TimerId id) {
    const auto work = std::move(works_.at(id));
    works_.erase(id);
    work();
  }
  transport::TimerId last() const { return last_; }

 private:
  mutable VirtualNetwork network_{1};
  std::map<transport::TimerId, std::function<void()>> works_;
  transport::TimerId last_ = 0;
};

class PatienceTest : public ::testing::Test {
 protected:
  HeldTimers timers_;
  std::optional<Patience::Signs> signs_ = Patience::Signs{};
  int given_up_ = 0;
  Patience patience_{timers_, [this] { return signs_; }, [] { return seconds(3); }, [this] { ++given_up_; }};
};

TEST_F(PatienceTest, APeerThatNeitherAnswersNorTalksIsGivenUp) {
  patience_.Watch();
  timers_.Fire(1);
  EXPECT_EQ(given_up_, 1);
}

TEST_F(PatienceTest, OneThatAnswersIsWatchedOn) {
  patience_.Watch();
  signs_->progress = 1;
  timers_.Fire(1);
  EXPECT_EQ(given_up_, 0);
  EXPECT_EQ(timers_.last(), 2u);
}

TEST_F(PatienceTest, OneThatTalksWithoutAnsweringIsGivenUpAfterEightTimesAsLong) {
  patience_.Watch();
  for (transport::TimerId id = 1; id <= 8; ++id) {
    EXPECT_EQ(given_up_, 0);
    ++signs_->heard;
    timers_.Fire(id);
  }
  EXPECT_EQ(given_up_, 1);
}

TEST_F(PatienceTest, ATimerThatWasStoppedWhileItWaitedForTheEngineSaysNothingOfThePeerSince) {
  patience_.Watch();
  patience_.Stop();
  patience_.Watch();  // another connection, of which as little is known
  timers_.Fire(1);
  EXPECT_EQ(given_up_, 0);
  timers_.Fire(2);
  EXPECT_EQ(given_up_, 1);
}

}  // namespace
}  // namespace weft::sim
