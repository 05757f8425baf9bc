#include "cm/request_gate.h"

#include <gtest/gtest.h>

namespace weft::cm {
namespace {

class RequestGateTest : public testing::Test {
 protected:
  bool Arrives() {
    auto request = std::make_unique<Event>();
    return gate_.Admit(request);
  }

  RequestGate gate_;
};

TEST_F(RequestGateTest, TheNextFollowsWhenTheOneBeforeIsTouched) {
  EXPECT_TRUE(Arrives());
  EXPECT_FALSE(Arrives());
  EXPECT_FALSE(Arrives());
  gate_.OnDelivered();
  EXPECT_EQ(gate_.OnTouched().size(), 1u);
  EXPECT_FALSE(Arrives());  // behind those that came earlier
  gate_.OnDelivered();
  EXPECT_EQ(gate_.OnTouched().size(), 1u);
}

TEST_F(RequestGateTest, NothingIsHeldFromAProgramThatTouchedThemAll) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Arrives());
    gate_.OnDelivered();
    EXPECT_TRUE(gate_.OnTouched().empty());
  }
}

TEST_F(RequestGateTest, AProgramThatCollectsGetsThemAllAfterAWhile) {
  EXPECT_TRUE(Arrives());
  EXPECT_FALSE(Arrives());
  EXPECT_FALSE(Arrives());
  EXPECT_FALSE(gate_.NeedsTimer()) << "the program has not come for the first";
  gate_.OnDelivered();
  EXPECT_TRUE(gate_.NeedsTimer());
  EXPECT_FALSE(gate_.NeedsTimer()) << "one is running";
  EXPECT_EQ(gate_.OnExpired().size(), 2u);
  gate_.OnDelivered();
  gate_.OnDelivered();
  EXPECT_FALSE(gate_.NeedsTimer()) << "nothing waits";
  EXPECT_FALSE(Arrives());
  EXPECT_TRUE(gate_.NeedsTimer());
}

TEST_F(RequestGateTest, TheTimerOfARequestTouchedMeanwhileReleasesNothing) {
  EXPECT_TRUE(Arrives());
  EXPECT_FALSE(Arrives());
  gate_.OnDelivered();
  EXPECT_TRUE(gate_.NeedsTimer());
  EXPECT_EQ(gate_.OnTouched().size(), 1u);
  EXPECT_FALSE(Arrives());
  EXPECT_TRUE(gate_.OnExpired().empty()) << "the second is announced, not delivered";
  gate_.OnDelivered();
  EXPECT_TRUE(gate_.NeedsTimer());
}

TEST_F(RequestGateTest, AListenerThatEndsGetsWhatItNeverTold) {
  EXPECT_TRUE(Arrives());
  EXPECT_FALSE(Arrives());
  EXPECT_EQ(gate_.Clear().size(), 1u);
}

TEST_F(RequestGateTest, WhatAClosedChannelTookWithItHoldsNothingBack) {
  EXPECT_TRUE(Arrives());
  EXPECT_FALSE(Arrives());
  EXPECT_EQ(gate_.Clear().size(), 1u);
  EXPECT_TRUE(Arrives());
  gate_.OnDelivered();
  EXPECT_TRUE(gate_.OnTouched().empty());
}

}  // namespace
}  // namespace weft::cm
