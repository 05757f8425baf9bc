#include "pmi/launch/fence_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::pmi {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(FenceCollectorTest, PassesOnWhatAllHostsPutAtOnceTimeAfterTime) {
  FenceCollector fence;
  for (int i = 0; i < 3; ++i) fence.AddHost();
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(fence.Enter(1, {{"a", "1"}}));
    const auto entered = fence.Enter(2, {{"b", "2"}, {"c", "3"}});
    ASSERT_TRUE(entered);
    EXPECT_EQ(entered->hosts, 3);
    EXPECT_THAT(entered->put, ElementsAre(Pair("a", "1"), Pair("b", "2"), Pair("c", "3")));
  }
}

TEST(FenceCollectorTest, HoldsNothingBackOnceARankHasEnded) {
  FenceCollector fence;
  for (int i = 0; i < 3; ++i) fence.AddHost();
  EXPECT_FALSE(fence.Enter(1, {}));
  EXPECT_EQ(fence.PassOn()->hosts, 1);
  EXPECT_FALSE(fence.PassOn()) << "nobody waits here";
  EXPECT_EQ(fence.Enter(1, {})->hosts, 1);
}

TEST(FenceCollectorTest, PassesOnBeforeAFrameIsTooLong) {
  FenceCollector fence;
  for (int i = 0; i < 3; ++i) fence.AddHost();
  const KeyValues most{{"k", std::string(FrameReader::kLongestPayload - SizeOfValues({{"k", ""}}), 'v')}};
  ASSERT_EQ(SizeOfValues(most), FrameReader::kLongestPayload);
  ASSERT_TRUE(fence.HasRoomFor(most));
  EXPECT_FALSE(fence.Enter(1, most));
  EXPECT_FALSE(fence.HasRoomFor({{"a", "1"}}));
  const auto first = fence.PassOn();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->hosts, 1);
  EXPECT_EQ(SerializeValues(first->put).size(), FrameReader::kLongestPayload);
  EXPECT_TRUE(fence.HasRoomFor({{"a", "1"}}));
  EXPECT_EQ(fence.Enter(2, {{"a", "1"}})->hosts, 2);
}

TEST(FenceCollectorTest, AHostThatGoesIsNotWaitedFor) {
  FenceCollector fence;
  fence.AddHost();
  fence.AddHost();
  EXPECT_FALSE(fence.Enter(1, {}));
  EXPECT_EQ(fence.RemoveHost()->hosts, 1);
  EXPECT_EQ(fence.hosts(), 1);
}

}  // namespace
}  // namespace weft::pmi
