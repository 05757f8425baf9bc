#include "mpi_hybrid/io/two_phase_messages.h"

#include <gtest/gtest.h>

namespace weft::mpi::io {
namespace {

constexpr FileRange kWindow = {4096, 1000};
constexpr int64_t kMost = 1 << 20;

bool Takes(const WindowList& list, int64_t most = kMost) {
  WindowList parsed;
  const bool taken = WindowList::Parse(list.Serialize(), kWindow, most, &parsed);
  if (taken) {
    EXPECT_EQ(parsed.Serialize(), list.Serialize());
  } else {
    EXPECT_TRUE(parsed.runs.empty() && parsed.bytes == 0 && parsed.next == kNowhere);
  }
  return taken;
}

TEST(WindowList, SaysTheSameAtTheOtherEnd) {
  EXPECT_TRUE(Takes({kNowhere, 0, {}}));
  EXPECT_TRUE(Takes({kNowhere, 1000, {{4096, 1000, 1, 0}}}));
  EXPECT_TRUE(Takes({5096, 40, {{4096, 10, 3, 100}, {5086, 10, 1, 0}}}));
}

TEST(WindowList, IsRefusedAtEachLengthButItsOwn) {
  std::vector<uint8_t> message = WindowList{5096, 30, {{4096, 10, 3, 100}}}.Serialize();
  WindowList list;
  for (size_t length = 0; length < message.size(); ++length) {
    EXPECT_FALSE(WindowList::Parse(std::span(message).first(length), kWindow, kMost, &list)) << length;
  }
  message.push_back(0);
  EXPECT_FALSE(WindowList::Parse(message, kWindow, kMost, &list));
}

TEST(WindowList, GoesOnBehindTheWindowOnly) {
  EXPECT_FALSE(Takes({5095, 0, {}}));
  EXPECT_FALSE(Takes({-1, 0, {}}));
}

TEST(WindowList, HasAsManyBytesAsItSaysAndMayHave) {
  EXPECT_FALSE(Takes({kNowhere, 29, {{4096, 10, 3, 100}}}));
  EXPECT_FALSE(Takes({kNowhere, 30, {{4096, 10, 3, 100}}}, 29));
  // The sum of all would overflow.
  const RangeRun whole = {4096, 1000, 1, 0};
  EXPECT_TRUE(Takes({kNowhere, 3000, {whole, whole, whole}}));
  EXPECT_FALSE(Takes({kNowhere, 0, {{4096, 1000, INT64_MAX / 500, 0}, {4096, 1000, INT64_MAX / 500, 0}}}));
}

TEST(WindowList, IsNoLongerThanItsBytesAllow) {
  const WindowList longest = {5096, 3, {{4096, 1, 1, 0}, {4098, 1, 1, 0}, {4105, 1, 1, 0}}};
  EXPECT_EQ(WindowList::MostMessageBytes(3), static_cast<int64_t>(longest.Serialize().size()));
  EXPECT_EQ(WindowList::MostMessageBytes(0), static_cast<int64_t>(WindowList{}.Serialize().size()));
  EXPECT_GT(WindowList::MostMessageBytes(INT64_MAX), INT64_MAX / 2);
}

// Walking over it would take for ever.
TEST(WindowList, HasNoRangeManyTimes) { EXPECT_FALSE(Takes({kNowhere, int64_t{1} << 60, {{4096, 1, int64_t{1} << 60, 0}}}, INT64_MAX)); }

TEST(Extent, LiesWithinAFile) {
  EXPECT_TRUE((Extent{0, 10, 4, 2, 0}.MakesSense()));
  EXPECT_TRUE((Extent{-7, -9, 0, 0, 0}.MakesSense()));  // of a rank without data
  EXPECT_FALSE((Extent{-1, 10, 4, 2, 0}.MakesSense()));
  EXPECT_FALSE((Extent{10, 10, 4, 2, 0}.MakesSense()));
  EXPECT_FALSE((Extent{0, INT64_MAX, 4, 2, 0}.MakesSense()));
  EXPECT_FALSE((Extent{0, 10, -4, 2, 0}.MakesSense()));
  EXPECT_FALSE((Extent{0, 10, 4, 0, 0}.MakesSense()));
}

TEST(Go, NamesAWindowBehindThisOneBeforeOwnDataAndTheEndOfTheDomain) {
  const auto makes_sense = [](int64_t next, int64_t own_next) { return Go{next, kNowhere}.MakesSense(kWindow, 9000, own_next); };
  EXPECT_TRUE(makes_sense(5096, 6000));
  EXPECT_TRUE(makes_sense(6000, 6000));
  EXPECT_TRUE(makes_sense(kNowhere, kNowhere));
  EXPECT_FALSE(makes_sense(5095, 6000));
  EXPECT_FALSE(makes_sense(6001, 6000));
  EXPECT_FALSE(makes_sense(9000, kNowhere));
  EXPECT_FALSE(makes_sense(kNowhere, 6000));
  EXPECT_FALSE((Go{5096, -1}.MakesSense(kWindow, 9000, kNowhere)));
  EXPECT_FALSE(Go::GivenUp().MakesSense(kWindow, 9000, kNowhere));
}

}  // namespace
}  // namespace weft::mpi::io
