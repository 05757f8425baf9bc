#include "ddp/untagged_queue.h"

#include <gtest/gtest.h>

namespace weft::ddp {
namespace {

UntaggedHeader At(uint32_t msn, uint32_t message_offset) {
  UntaggedHeader header;
  header.msn = Msn(msn);
  header.message_offset = message_offset;
  return header;
}

TEST(UntaggedQueue, StartsAtMessageOneOffsetZero) {
  UntaggedQueue queue;
  EXPECT_EQ(queue.CheckPosition(At(1, 0)), std::nullopt);
  EXPECT_EQ(queue.CheckPosition(At(0, 0)), Error::kMsnRange);
  EXPECT_EQ(queue.CheckPosition(At(2, 0)), Error::kMsnRange);
  EXPECT_EQ(queue.CheckPosition(At(1, 1)), Error::kInvalidMessageOffset);
  EXPECT_FALSE(queue.message_open());
}

TEST(UntaggedQueue, WantsTheBytesThatFollow) {
  UntaggedQueue queue;
  queue.Advance(100, /*last=*/false);
  EXPECT_TRUE(queue.message_open());
  EXPECT_EQ(queue.CheckPosition(At(1, 100)), std::nullopt);
  EXPECT_EQ(queue.CheckPosition(At(1, 0)), Error::kInvalidMessageOffset);
  EXPECT_EQ(queue.CheckPosition(At(1, 99)), Error::kInvalidMessageOffset);
  EXPECT_EQ(queue.CheckPosition(At(1, 101)), Error::kInvalidMessageOffset);
  EXPECT_EQ(queue.CheckPosition(At(2, 0)), Error::kMsnRange);
  queue.Advance(1, /*last=*/true);
  EXPECT_EQ(queue.CheckPosition(At(2, 0)), std::nullopt);
  EXPECT_EQ(queue.CheckPosition(At(1, 101)), Error::kMsnRange);
}

TEST(UntaggedQueue, IsOpenAfterAnEmptySegmentThatIsNotTheLast) {
  UntaggedQueue queue;
  queue.Advance(0, /*last=*/false);
  EXPECT_TRUE(queue.message_open());
  EXPECT_EQ(queue.next_msn(), Msn(1));
}

TEST(UntaggedQueue, HoldsAMessageAsLongAsTheBuffer) {
  UntaggedQueue queue;
  EXPECT_EQ(queue.CheckRoom(100, 100), std::nullopt);
  EXPECT_EQ(queue.CheckRoom(101, 100), Error::kMessageTooLong);
  EXPECT_EQ(queue.CheckRoom(0, 0), std::nullopt);
  queue.Advance(60, /*last=*/false);
  EXPECT_EQ(queue.CheckRoom(40, 100), std::nullopt);
  EXPECT_EQ(queue.CheckRoom(41, 100), Error::kMessageTooLong);
}

TEST(UntaggedQueue, RefusesMessagesOf4GiB) {
  UntaggedQueue queue;
  queue.Advance(UINT32_MAX - 10, /*last=*/false);
  EXPECT_EQ(queue.CheckRoom(10, UINT64_MAX), std::nullopt);
  EXPECT_EQ(queue.CheckRoom(11, UINT64_MAX), Error::kMessageTooLong);
}

}  // namespace
}  // namespace weft::ddp
