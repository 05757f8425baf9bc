#include "base/warning_limit.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;

constexpr WarningLimit::Place kHere{"a.cc", 1}, kThere{"a.cc", 2};

int Admitted(WarningLimit& limit, WarningLimit::Place place, WarningLimit::Time now, int count) {
  int admitted = 0;
  for (int i = 0; i < count; ++i) admitted += limit.Admit(place, "bad peer " + std::to_string(i), now).has_value();
  return admitted;
}

TEST(WarningLimitTest, AFloodGetsABurstAndThenOneASecond) {
  WarningLimit limit;
  const WarningLimit::Time start{1000s};
  EXPECT_EQ(Admitted(limit, kHere, start, 5000), WarningLimit::kBurst);
  EXPECT_EQ(Admitted(limit, kHere, start + 999ms, 5000), 0);
  EXPECT_EQ(Admitted(limit, kHere, start + 1s, 5000), 1);
  EXPECT_EQ(Admitted(limit, kHere, start + 3500ms, 5000), 2);
}

TEST(WarningLimitTest, SaysHowManyWereLeftOut) {
  WarningLimit limit;
  const WarningLimit::Time start{1000s};
  Admitted(limit, kHere, start, WarningLimit::kBurst + 7);
  EXPECT_EQ(limit.Admit(kHere, "one more", start + 1s), "one more (7 similar messages were dropped before it)");
  EXPECT_EQ(limit.Admit(kHere, "and another", start + 2s), "and another");
}

TEST(WarningLimitTest, WhatNobodySaidYetIsSaidAtTheEnd) {
  WarningLimit limit;
  Admitted(limit, kHere, WarningLimit::Time{1000s}, WarningLimit::kBurst + 2);
  const auto texts = limit.TakeLeftOut();
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_EQ(texts[0], "2 similar messages were dropped; the last one: bad peer 11");
  EXPECT_TRUE(limit.TakeLeftOut().empty());
}

TEST(WarningLimitTest, PlacesDoNotHideEachOther) {
  WarningLimit limit;
  const WarningLimit::Time now{1000s};
  Admitted(limit, kHere, now, 100);
  EXPECT_EQ(limit.Admit(kThere, "something else", now), "something else");
}

TEST(WarningLimitTest, AQuietPlaceHasItsBurstAgain) {
  WarningLimit limit;
  const WarningLimit::Time start{1000s};
  Admitted(limit, kHere, start, 100);
  EXPECT_EQ(Admitted(limit, kHere, start + 3600s, 100), WarningLimit::kBurst);
}

}  // namespace
}  // namespace weft
