#include "mpi_hybrid/p2p/host/ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>

namespace weft::mpi::host {
namespace {

using Result = RingReader::Result;

class RingTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kCells = 10, kCellBytes = 1000;

  void Put(const std::string& text) {
    std::memcpy(writer_.next(), text.data(), text.size());
    writer_.Put(text.size(), BulkKind::kNone);
  }
  std::string Get() {
    RingItem item;
    EXPECT_EQ(reader_.Look(&item), Result::kItem);
    std::string text(item.first.begin(), item.first.end());
    reader_.Advance();
    return text;
  }

  std::unique_ptr<RingPage> page_{new RingPage{}};
  RingWriter writer_{*page_};
  RingReader reader_{*page_, kCells, kCellBytes};
};

TEST_F(RingTest, SlotsAreReadInOrderRoundAfterRound) {
  RingItem item;
  EXPECT_EQ(reader_.Look(&item), Result::kNothing);
  for (uint32_t i = 0; i < 5 * RingPage::kSlots; ++i) {
    const std::string text(i % (RingSlot::kInline + 1), static_cast<char>('a' + i % 26));
    ASSERT_FALSE(reader_.has_news());
    Put(text);
    ASSERT_TRUE(reader_.has_news());
    ASSERT_EQ(Get(), text);
    ASSERT_FALSE(reader_.Publish());
    ASSERT_TRUE(writer_.Look());
  }
}

TEST_F(RingTest, AFullRingHasRoomWhenTheReaderHasSaidWhatItRead) {
  for (uint32_t i = 0; i < RingPage::kSlots; ++i) {
    ASSERT_TRUE(writer_.has_room());
    Put(std::to_string(i));
  }
  EXPECT_FALSE(writer_.has_room());
  for (uint32_t i = 0; i < 10; ++i) EXPECT_EQ(Get(), std::to_string(i));
  ASSERT_TRUE(writer_.Look());
  EXPECT_FALSE(writer_.has_room());
  EXPECT_FALSE(reader_.Publish());
  ASSERT_TRUE(writer_.Look());
  EXPECT_EQ(writer_.under_way(), RingPage::kSlots - 10);
  for (uint32_t i = 0; i < 10; ++i) Put("more");
  EXPECT_FALSE(writer_.has_room());
}

TEST_F(RingTest, ASlotRefersToACellOrToMemory) {
  std::memcpy(writer_.next(), "head", 4);
  writer_.Put(4, BulkKind::kCell, 9, kCellBytes);
  writer_.Put(0, BulkKind::kMemory, 0xffff'ffff'ffff'fff0, 1 << 20);
  writer_.Put(0, BulkKind::kEnd);
  RingItem item;
  ASSERT_EQ(reader_.Look(&item), Result::kItem);
  EXPECT_EQ(std::string(item.first.begin(), item.first.end()), "head");
  EXPECT_EQ(item.bulk, BulkKind::kCell);
  EXPECT_EQ(item.where, 9U);
  EXPECT_EQ(item.length, kCellBytes);
  reader_.Advance();
  ASSERT_EQ(reader_.Look(&item), Result::kItem);
  EXPECT_EQ(item.bulk, BulkKind::kMemory);
  EXPECT_EQ(item.where, 0xffff'ffff'ffff'fff0);
  reader_.Advance();
  ASSERT_EQ(reader_.Look(&item), Result::kItem);
  EXPECT_EQ(item.bulk, BulkKind::kEnd);
}

TEST_F(RingTest, AWriterThatWaitsIsToBeRungWhenEnoughWasRead) {
  for (int i = 0; i < 4; ++i) Put("x");
  writer_.WaitFor(3);
  Get();
  Get();
  EXPECT_FALSE(reader_.Publish());
  Get();
  EXPECT_TRUE(reader_.Publish());
  writer_.StopWaiting();
  EXPECT_FALSE(reader_.Publish());
}

TEST_F(RingTest, CountsThatWrapAroundGoOn) {
  const uint32_t before = 0 - RingPage::kSlots * 3 / 2;
  RingWriter writer(*page_, before);
  RingReader reader(*page_, kCells, kCellBytes, before);
  page_->read = before;
  writer.WaitFor(before + 3 * RingPage::kSlots);
  for (uint32_t i = 1; i <= 3 * RingPage::kSlots; ++i) {
    ASSERT_FALSE(reader.has_news());
    ASSERT_EQ(writer.Put(0, BulkKind::kNone), before + i);
    ASSERT_TRUE(reader.has_news());
    reader.Advance();
    ASSERT_EQ(reader.Publish(), i == 3 * RingPage::kSlots);
    ASSERT_TRUE(writer.Look());
    ASSERT_EQ(writer.under_way(), 0U);
  }
}

TEST_F(RingTest, NonsenseOfTheWriterIsFound) {
  const auto says = [&](uint64_t control, uint64_t where, uint64_t length) {
    RingSlot& slot = page_->slots[0];
    std::memcpy(slot.bytes + 40, &where, 8);
    std::memcpy(slot.bytes + 48, &length, 8);
    slot.control = control;
    RingItem item;
    return reader_.Look(&item);
  };
  const auto control = [](uint64_t number, uint64_t bytes, uint64_t kind) { return number | bytes << 32 | kind << 40; };
  EXPECT_EQ(says(control(1, 40, 1), 9, 1000), Result::kItem);
  EXPECT_EQ(says(control(2, 40, 1), 9, 1000), Result::kNonsense);
  EXPECT_EQ(says(control(UINT32_MAX, 40, 1), 9, 1000), Result::kNonsense);
  EXPECT_EQ(says(control(uint32_t{1} - RingPage::kSlots, 40, 1), 9, 1000), Result::kNothing);
  EXPECT_EQ(says(control(0, 40, 1), 9, 1000), Result::kNothing);
  EXPECT_EQ(says(control(1, 41, 1), 9, 1000), Result::kNonsense);
  EXPECT_EQ(says(control(1, 57, 0), 0, 0), Result::kNonsense);
  EXPECT_EQ(says(control(1, 255, 0), 0, 0), Result::kNonsense);
  EXPECT_EQ(says(control(1, 0, 5), 0, 1), Result::kNonsense);
  EXPECT_EQ(says(control(1, 0, 256), 0, 1), Result::kNonsense);
  EXPECT_EQ(says(control(1, 0, 1), 10, 1), Result::kNonsense);
  EXPECT_EQ(says(control(1, 0, 1), UINT64_MAX, 1), Result::kNonsense);
  EXPECT_EQ(says(control(1, 0, 1), 0, 1001), Result::kNonsense);
  EXPECT_EQ(says(control(1, 0, 1), 0, 0), Result::kNonsense);
  EXPECT_EQ(says(control(1, 0, 2), 0, UINT64_MAX), Result::kNonsense);
  EXPECT_EQ(says(control(1, 0, 2), 1, 1), Result::kItem);
  EXPECT_EQ(says(control(1, 41, 4), 1, 1), Result::kNonsense);
  EXPECT_EQ(says(control(1, 40, 4), 1, UINT64_MAX), Result::kNonsense);
  EXPECT_EQ(says(control(1, 40, 4), 1, 0), Result::kNonsense);
  EXPECT_EQ(says(control(1, 40, 4), 1, 1), Result::kItem);
}

TEST_F(RingTest, NonsenseOfTheReaderIsFound) {
  Put("a");
  Put("b");
  for (const uint32_t read : {3U, RingPage::kSlots, 0x8000'0000U, UINT32_MAX}) {
    page_->read = read;
    EXPECT_FALSE(writer_.Look()) << read;
  }
  page_->read = 2;
  EXPECT_TRUE(writer_.Look());
  page_->read = 1;  // it takes something back
  EXPECT_FALSE(writer_.Look());
}

TEST_F(RingTest, EachSideKnowsWhetherItsWordsWereOverwritten) {
  for (uint32_t i = 0; i < RingPage::kSlots + 2; ++i) {
    Put("x");
    EXPECT_TRUE(writer_.HasItsWords());
    if (i >= 2) Get();
    EXPECT_FALSE(reader_.Publish());
    EXPECT_TRUE(reader_.HasItsWords());
    ASSERT_TRUE(writer_.Look());
    EXPECT_TRUE(writer_.HasItsWords());
  }
  ASSERT_EQ(writer_.under_way(), 2U);
  for (const uint64_t change : {uint64_t{1}, ~uint64_t{0}}) {
    for (const size_t slot : {size_t{0}, size_t{1}}) {  // the last two
      page_->slots[slot].control += change;
      EXPECT_FALSE(writer_.HasItsWords());
      page_->slots[slot].control -= change;
      EXPECT_TRUE(writer_.HasItsWords());
    }
    page_->read += static_cast<uint32_t>(change);
    EXPECT_FALSE(reader_.HasItsWords());
    page_->read -= static_cast<uint32_t>(change);
    EXPECT_TRUE(reader_.HasItsWords());
  }
}

TEST_F(RingTest, ATextOfManySlotsComesWholeFromAnotherThread) {
  constexpr uint32_t kCount = 20'000;
  std::thread other([&] {
    for (uint32_t i = 0; i < kCount;) {
      if (!writer_.Look()) break;
      while (i < kCount && writer_.has_room()) {
        std::memcpy(writer_.next(), &i, sizeof(i));
        writer_.Put(sizeof(i), BulkKind::kNone);
        ++i;
      }
      std::this_thread::yield();
    }
  });
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < kCount;) {
    RingItem item;
    if (reader_.Look(&item) == Result::kNothing) {
      if (reader_.unpublished() != 0) (void)reader_.Publish();
      std::this_thread::yield();
      continue;
    }
    uint32_t got = 0;
    std::memcpy(&got, item.first.data(), sizeof(got));
    wrong += got != i++;
    reader_.Advance();
  }
  other.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace weft::mpi::host
