#include "mpi_hybrid/rma/parcel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {
namespace {

class ParcelTest : public testing::Test {
 protected:
  static constexpr int kOrigins = 4;

  ParcelTest() : segment_(host::Segment::Create(std::vector<int>{0}, 0, &why_)) { EXPECT_NE(segment_, nullptr) << why_; }

  static std::vector<uint8_t> Message(size_t i) { return std::vector<uint8_t>(1 + i * 977 % kSlotBytes, static_cast<uint8_t>(i)); }
  static bool Add(Parcel& parcel, const std::vector<uint8_t>& message) {
    uint8_t* const room = parcel.Begin();
    if (room == nullptr) return false;
    std::memcpy(room, message.data(), message.size());
    parcel.End(message.size());
    return true;
  }
  // Visits that say true while the messages are the first of the test, in order.
  Parcel::Visit Expected() {
    next_ = 0;
    return [this](ByteSpan message) {
      const std::vector<uint8_t> expected = Message(next_++);
      return std::equal(message.begin(), message.end(), expected.begin(), expected.end());
    };
  }

  std::string why_;
  std::unique_ptr<host::Segment> segment_;
  size_t next_ = 0;
};

TEST_F(ParcelTest, MessagesComeInOrderHereAndAtTheTarget) {
  for (const size_t count : {1, 3, 100, 1000}) {
    Parcel parcel(*segment_, kOrigins);
    ParcelReader reader;
    for (size_t i = 0; i < count; ++i) ASSERT_TRUE(Add(parcel, Message(i)));
    EXPECT_TRUE(parcel.ForEach(Expected()));
    EXPECT_EQ(next_, count);
    ASSERT_TRUE(parcel.Seal());
    EXPECT_TRUE(parcel.ForEach(Expected()));
    EXPECT_EQ(next_, count);
    EXPECT_TRUE(reader.Read(*segment_, parcel.offset(), parcel.bytes(), Expected()));
    EXPECT_EQ(next_, count);
    parcel.Clear(/*handed_over=*/true);
    EXPECT_TRUE(parcel.empty());
    ASSERT_TRUE(Add(parcel, Message(0)));
    EXPECT_TRUE(parcel.ForEach(Expected()));
    EXPECT_EQ(next_, 1u);
    parcel.GiveBack();
  }
}

TEST_F(ParcelTest, AllParcelsOfAProcessHaveOneLimitAndWhatIsHandedOverCountsUntilItIsReturned) {
  const std::vector<uint8_t> message(kSlotBytes);
  Parcel one(*segment_, kOrigins), other(*segment_, kOrigins);
  size_t messages = 0;
  while (Add(messages % 2 == 0 ? one : other, message)) ++messages;
  EXPECT_GT(messages, 500u);
  EXPECT_LE(messages * kSlotBytes, Parcel::kMost);
  one.Clear(/*handed_over=*/true);
  EXPECT_FALSE(Add(other, message));
  one.Returned();
  EXPECT_TRUE(Add(other, message));
  other.Clear(/*handed_over=*/false);
  EXPECT_TRUE(Add(one, message));
}

TEST_F(ParcelTest, WhatIsNoParcelIsNotRead) {
  Parcel parcel(*segment_, kOrigins);
  for (size_t i = 0; i < 10; ++i) ASSERT_TRUE(Add(parcel, Message(i)));
  ASSERT_TRUE(parcel.Seal());
  ParcelReader reader;
  const auto any = [](ByteSpan) { return true; };
  EXPECT_FALSE(reader.Read(*segment_, parcel.offset(), parcel.bytes() - 1, any)) << "ends inside a message";
  EXPECT_FALSE(reader.Read(*segment_, parcel.offset() + 1, parcel.bytes() - 1, any)) << "begins inside one";
  EXPECT_FALSE(reader.Read(*segment_, parcel.offset(), Parcel::kMost + 1, any)) << "too long";
  EXPECT_FALSE(reader.Read(*segment_, UINT64_MAX - 8, parcel.bytes(), any)) << "not in the file";
  EXPECT_FALSE(reader.Read(*segment_, parcel.offset() + Parcel::kMost / 2, 4096, any)) << "nothing there";
  EXPECT_FALSE(reader.Read(*segment_, parcel.offset(), parcel.bytes(), [](ByteSpan) { return false; })) << "not to be had";
}

// A call of the kernel would not be allowed to write there.
TEST_F(ParcelTest, ShortOnesGoWithoutCallsOnceThereIsMemoryForThem) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit short_files{4096, 4096};
    Parcel parcel(*segment_, kOrigins);
    ParcelReader reader;
    bool good = true;
    for (const size_t messages : {1, 3, 2, 1}) {  // the second is longer
      good = good && (messages != 2 || setrlimit(RLIMIT_FSIZE, &short_files) == 0);
      for (size_t i = 0; i < messages; ++i) good = good && Add(parcel, Message(i));
      good = good && parcel.Seal() && reader.Read(*segment_, parcel.offset(), parcel.bytes(), Expected()) && next_ == messages;
      parcel.Clear(/*handed_over=*/true);
      parcel.Returned();
    }
    bool longer = true;
    for (size_t i = 0; i < 20; ++i) longer = longer && Add(parcel, Message(i));
    _exit(good && !(longer && parcel.Seal()) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Its target gives the memory of the first back when it has read it.
TEST_F(ParcelTest, NothingIsKnownOfTheMemoryOfALongOne) {
  Parcel parcel(*segment_, kOrigins);
  ParcelReader reader;
  for (const size_t messages : {1, 1000, 1, 1}) {
    for (size_t i = 0; i < messages; ++i) ASSERT_TRUE(Add(parcel, Message(i)));
    ASSERT_TRUE(parcel.Seal());
    EXPECT_TRUE(reader.Read(*segment_, parcel.offset(), parcel.bytes(), Expected()));
    EXPECT_EQ(next_, messages);
    if (parcel.bytes() > Parcel::KeptBytes(kOrigins)) segment_->Discard(parcel.offset(), parcel.bytes());
    parcel.Clear(/*handed_over=*/true);
    parcel.Returned();
  }
}

// Of many origins a target keeps less than a page: the page of a parcel that is longer may be gone.
TEST_F(ParcelTest, OnlyWhatIsKeptGoesWithoutCalls) {
  constexpr int kManyOrigins = 1000;
  const pid_t child = fork();
  if (child == 0) {
    const rlimit short_files{4096, 4096};
    const std::vector<uint8_t> message(Parcel::KeptBytes(kManyOrigins) - 100);
    Parcel parcel(*segment_, kManyOrigins);
    bool good = Add(parcel, message) && parcel.Seal() && setrlimit(RLIMIT_FSIZE, &short_files) == 0;
    parcel.Clear(/*handed_over=*/false);
    good = good && Add(parcel, message) && parcel.Seal();
    parcel.Clear(/*handed_over=*/false);
    _exit(good && Add(parcel, message) && Add(parcel, message) && !parcel.Seal() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(ParcelTest, WhereFilesMayNotBeThatLongAllIsStillThere) {
  const pid_t child = fork();
  if (child == 0) {
    Parcel parcel(*segment_, kOrigins);
    const rlimit short_files{4096, 4096};
    const bool kept = Add(parcel, Message(0)) && setrlimit(RLIMIT_FSIZE, &short_files) == 0 && !parcel.Seal() && parcel.ForEach(Expected()) && next_ == 1;
    _exit(kept ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace weft::mpi::rma
