#include "ddp/sctp/held_messages.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace weft::ddp::sctp {
namespace {

using Bytes = std::vector<uint8_t>;
using Message = HeldMessages::Message;

Bytes Pattern(size_t length, uint8_t seed) {
  Bytes bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(seed + i * 7);
  return bytes;
}

Bytes Contents(const HeldMessages& held, const Message& message) {
  Bytes all;
  HeldMessages::Reader reader(held, message);
  for (ByteSpan bytes = reader.Next(); !bytes.empty(); bytes = reader.Next())
    all.insert(all.end(), bytes.begin(), bytes.end());
  return all;
}

TEST(HeldMessagesTest, AMessageOfEveryLengthComesBack) {
  BufferPool pool;
  HeldMessages held(pool, 1 << 20);
  for (size_t length : {0, 1, 255, 256, 257, 511, 512, 513, 65535}) {
    const Message message = held.Keep(Pattern(length, 3));
    EXPECT_EQ(Contents(held, message), Pattern(length, 3));
    EXPECT_EQ(held.cells_in_use(), HeldMessages::CellsFor(length));
    held.Drop(message);
    EXPECT_EQ(held.cells_in_use(), 0u);
  }
}

TEST(HeldMessagesTest, WhereNoMessageIsThereIsNoMemory) {
  BufferPool pool;
  HeldMessages held(pool, 1 << 20);
  EXPECT_EQ(held.blocks_in_use(), 0u);
  std::vector<Message> messages;
  while (held.Fits(65535)) messages.push_back(held.Keep(Bytes(65535, 1)));
  EXPECT_EQ(held.blocks_in_use(), 7u);  // a MiB, in whole blocks
  for (const Message& message : messages) held.Drop(message);
  EXPECT_EQ(held.blocks_in_use(), 0u);
}

TEST(HeldMessagesTest, TheBoundHoldsAndAllOfItCanBeUsed) {
  BufferPool pool;
  HeldMessages held(pool, 1);
  const size_t cells = held.free_cells();
  EXPECT_EQ(cells, BufferPool::kBlockSize / HeldMessages::kCellSize);
  std::vector<Message> messages;
  for (size_t i = 0; i < cells; ++i) messages.push_back(held.Keep(Bytes(1, static_cast<uint8_t>(i))));
  EXPECT_FALSE(held.Fits(0));
  for (size_t i = 0; i < cells; ++i) EXPECT_EQ(Contents(held, messages[i]), Bytes(1, static_cast<uint8_t>(i)));
}

TEST(HeldMessagesTest, ManyThatWantMuchShareTheBudgetAndLeaveSomeForOneThatComesLater) {
  constexpr size_t kBlocks = 100, kMany = 40;
  BufferPool pool;
  HeldBudget budget(kBlocks);
  std::vector<std::unique_ptr<HeldMessages>> greedy;
  for (size_t i = 0; i < kMany; ++i) greedy.push_back(std::make_unique<HeldMessages>(pool, size_t{64} << 20, &budget));
  for (const auto& one : greedy) {
    while (one->Fits(65535)) one->Keep(Bytes(65535, 1));
  }
  EXPECT_LE(budget.taken(), kBlocks + kMany * HeldBudget::kOwn);
  EXPECT_LE(greedy.front()->blocks_in_use(), kBlocks / 2);
  for (const auto& one : greedy) EXPECT_GE(one->blocks_in_use(), HeldBudget::kOwn);
  {
    HeldMessages late(pool, size_t{64} << 20, &budget);
    EXPECT_TRUE(late.Fits(65535));
    late.Keep(Bytes(65535, 1));
  }
  greedy.clear();
  EXPECT_EQ(budget.taken(), 0u);
}

TEST(HeldMessagesTest, WhatHasRoomInMemoryThatIsThereNeedsNoBudget) {
  BufferPool pool;
  HeldBudget budget(0);
  HeldMessages held(pool, size_t{64} << 20, &budget);
  size_t cells = 0;
  for (; held.Fits(1); ++cells) held.Keep(Bytes(1, 1));
  EXPECT_EQ(held.blocks_in_use(), HeldBudget::kOwn);
  EXPECT_EQ(cells, held.cells_in_use());
  EXPECT_EQ(cells % HeldBudget::kOwn, 0u);
  EXPECT_EQ(budget.taken(), HeldBudget::kOwn);
}

// Each stretch is a piece of the copy that the kernel makes.
size_t Stretches(const HeldMessages& held, const Message& message) {
  size_t stretches = 0;
  const uint8_t* end = nullptr;
  HeldMessages::Reader reader(held, message);
  for (ByteSpan bytes = reader.Next(); !bytes.empty(); bytes = reader.Next()) {
    stretches += bytes.data() != end;
    end = bytes.data() + bytes.size();
  }
  return stretches;
}

TEST(HeldMessagesTest, WhatComesAfterwardsLiesTogetherAsWell) {
  BufferPool pool;
  HeldMessages held(pool, 1 << 20);
  const Message stays = held.Keep(Bytes(1, 1));
  for (int round = 0; round < 5; ++round) {
    const Message one = held.Keep(Bytes(20000, 2)), two = held.Keep(Bytes(20000, 3));
    EXPECT_EQ(Stretches(held, one), 1u) << round;
    EXPECT_EQ(Stretches(held, two), 1u) << round;
    held.Drop(one);
    held.Drop(two);
  }
  held.Drop(stays);
}

TEST(HeldMessagesTest, RandomComingAndGoingMixesNothingUp) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    BufferPool pool;
    HeldMessages held(pool, 300'000);
    struct Kept {
      Message message;
      uint8_t seed;
    };
    std::vector<Kept> kept;
    for (int step = 0; step < 2000; ++step) {
      const size_t length = random() % 3 == 0 ? random() % 20000 : random() % 600;
      if (random() % 2 == 0 && held.Fits(length)) {
        const auto pattern = static_cast<uint8_t>(random());
        kept.push_back({held.Keep(Pattern(length, pattern)), pattern});
      } else if (!kept.empty()) {
        std::swap(kept[random() % kept.size()], kept.back());
        ASSERT_EQ(Contents(held, kept.back().message), Pattern(kept.back().message.length, kept.back().seed));
        held.Drop(kept.back().message);
        kept.pop_back();
      }
    }
    for (const Kept& one : kept) {
      ASSERT_EQ(Contents(held, one.message), Pattern(one.message.length, one.seed));
      held.Drop(one.message);
    }
    EXPECT_EQ(held.cells_in_use(), 0u);
    EXPECT_EQ(held.blocks_in_use(), 0u);
  }
}

}  // namespace
}  // namespace weft::ddp::sctp
