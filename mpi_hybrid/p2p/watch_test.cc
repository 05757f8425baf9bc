#include "mpi_hybrid/p2p/watch.h"

#include <gtest/gtest.h>

namespace weft::mpi {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Watch::Clock::time_point kStart{};

TEST(WatchTest, AQuarterOfASecondInWhichNothingCameConnectsOnce) {
  Watch watch;
  EXPECT_EQ(watch.BeforeSleep(kStart, 0), 250);
  EXPECT_TRUE(watch.AfterSleep(kStart + milliseconds(250), /*ready=*/false));
  EXPECT_EQ(watch.BeforeSleep(kStart + milliseconds(250), 0), -1);
  EXPECT_FALSE(watch.AfterSleep(kStart + seconds(100), /*ready=*/false));
}

TEST(WatchTest, WhatCameBeginsTheTimeAnew) {
  Watch watch;
  EXPECT_EQ(watch.BeforeSleep(kStart, 0), 250);
  EXPECT_FALSE(watch.AfterSleep(kStart + milliseconds(200), /*ready=*/true));
  EXPECT_EQ(watch.BeforeSleep(kStart + milliseconds(200), 0), 250);
}

// A listener at its limit of descriptors looks each 100 ms.
TEST(WatchTest, SleepsThatEndedForADeadlineOfTheDeviceCountTogether) {
  Watch watch;
  EXPECT_EQ(watch.BeforeSleep(kStart, 0), 250);
  EXPECT_FALSE(watch.AfterSleep(kStart + milliseconds(100), /*ready=*/false));
  EXPECT_EQ(watch.BeforeSleep(kStart + milliseconds(100), 0), 150);
  EXPECT_FALSE(watch.AfterSleep(kStart + milliseconds(200), /*ready=*/false));
  EXPECT_EQ(watch.BeforeSleep(kStart + milliseconds(200), 0), 50);
  EXPECT_TRUE(watch.AfterSleep(kStart + milliseconds(250), /*ready=*/false));
}

TEST(WatchTest, AnAttemptThatToldNothingIsMadeAgain) {
  Watch watch;
  watch.BeforeSleep(kStart, 7);  // those of before do not count
  ASSERT_TRUE(watch.AfterSleep(kStart + milliseconds(250), /*ready=*/false));
  ASSERT_EQ(watch.BeforeSleep(kStart + milliseconds(250), 7), -1);
  EXPECT_FALSE(watch.AfterSleep(kStart + seconds(31), /*ready=*/false));
  EXPECT_EQ(watch.BeforeSleep(kStart + seconds(31), 8), 250);
  EXPECT_TRUE(watch.AfterSleep(kStart + seconds(32), /*ready=*/false));
  EXPECT_EQ(watch.BeforeSleep(kStart + seconds(32), 8), -1);
}

}  // namespace
}  // namespace weft::mpi
