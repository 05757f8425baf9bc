#include "mpi_hybrid/io/message_memory.h"

#include <gtest/gtest.h>

#include <utility>

namespace weft::mpi::io {
namespace {

TEST(MessageMemoryTest, GivesWhatWasGivenBackWhereItIsLongEnough) {
  MessageMemory memory;
  MessageMemory::Piece first, second;
  ASSERT_TRUE(memory.Take(1000, &first));
  EXPECT_EQ(first.size(), 1000u);
  uint8_t* const where = first.data();
  where[999] = 7;
  memory.Give(std::move(first));
  ASSERT_TRUE(memory.Take(900, &second));
  EXPECT_EQ(second.data(), where);
  EXPECT_EQ(second.size(), 900u);
  memory.Give(std::move(second));
  ASSERT_TRUE(memory.Take(1000, &first));
  EXPECT_EQ(first.data(), where);
  EXPECT_EQ(first.data()[999], 7);
}

TEST(MessageMemoryTest, TwoThatAreInUseAreNotTheSame) {
  MessageMemory memory;
  MessageMemory::Piece first, second;
  ASSERT_TRUE(memory.Take(100, &first));
  memory.Give(std::move(first));
  ASSERT_TRUE(memory.Take(100, &first));
  ASSERT_TRUE(memory.Take(100, &second));
  EXPECT_NE(first.data(), second.data());
}

TEST(MessageMemoryTest, OneThatIsTooShortMakesRoomForALongerOne) {
  MessageMemory memory;
  MessageMemory::Piece piece;
  for (int64_t bytes = 1; bytes < 100000; bytes += 999) {
    ASSERT_TRUE(memory.Take(bytes, &piece));
    EXPECT_EQ(piece.size(), static_cast<size_t>(bytes));
    piece.data()[bytes - 1] = 1;  // a sanitizer knows whether it is there
    memory.Give(std::move(piece));
  }
}

TEST(MessageMemoryTest, OfNoBytesThereIsNoMemory) {
  MessageMemory memory;
  MessageMemory::Piece piece;
  ASSERT_TRUE(memory.Take(0, &piece));
  EXPECT_TRUE(piece.empty());
  memory.Give(std::move(piece));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose allocators end the program
TEST(MessageMemoryTest, SaysThatThereIsNotAsMuch) {
  MessageMemory memory;
  MessageMemory::Piece piece;
  ASSERT_TRUE(memory.Take(100, &piece));
  memory.Give(std::move(piece));
  EXPECT_FALSE(memory.Take(INT64_MAX, &piece));
  EXPECT_TRUE(piece.empty());
  EXPECT_TRUE(memory.Take(100, &piece));
}
#endif

}  // namespace
}  // namespace weft::mpi::io
