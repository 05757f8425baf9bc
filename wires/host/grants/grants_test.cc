#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "wires/host/grants/granter.h"
#include "wires/host/grants/placer.h"

namespace weft::host {
namespace {

// Both sides in one process: the peer's memory is our own.
class GrantsTest : public testing::Test {
 protected:
  static constexpr uint64_t kOffset = 0x10000;

  void SetUp() override {
    Probe probe;
    PeerMemory::ShowProbe(probe);
    ASSERT_TRUE(peer_memory_.TryProbe(probe));
    ASSERT_TRUE(peer_memory_.TryWriting());
    placer_.SetReaches(true);
    EXPECT_TRUE(granter_.peer_reaches());
  }

  llp::TaggedBuffer Buffer(uint32_t tag) { return {.tag = tag, .offset = kOffset, .memory = memory_.data(), .length = memory_.size(), .writable = true, .readable = true}; }
  bool Place(uint32_t tag, uint64_t offset, std::string text) {
    const iovec piece{text.data(), text.size()};
    return placer_.Place({.tag = tag, .offset = offset}, {&piece, 1}, text.size());
  }
  std::string At(size_t position, size_t length) const { return {memory_.begin() + static_cast<ptrdiff_t>(position), memory_.begin() + static_cast<ptrdiff_t>(position + length)}; }
  // A tag that wants the same place.
  static uint32_t Rival(uint32_t tag) {
    uint32_t other = tag + 1;
    while (HomeOf(other) != HomeOf(tag)) ++other;
    return other;
  }

  GrantWords words_{};
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(4096, '.');
  PeerMemory peer_memory_{getpid()};
  Granter granter_{words_};
  Placer placer_{words_, peer_memory_};
};

TEST_F(GrantsTest, WhatIsOpenIsPlacedIn) {
  EXPECT_FALSE(Place(7, kOffset, "early"));
  ASSERT_TRUE(granter_.Open(Buffer(7)));
  EXPECT_TRUE(granter_.IsOpen(7));
  EXPECT_TRUE(Place(7, kOffset + 5, "hello"));
  EXPECT_EQ(At(4, 7), ".hello.");
  EXPECT_FALSE(Place(8, kOffset + 5, "other"));
  EXPECT_FALSE(Place(Rival(7), kOffset + 5, "other"));
  EXPECT_EQ(At(4, 7), ".hello.");
}

TEST_F(GrantsTest, WhatIsOpenIsRead) {
  std::string got(5, '-');
  const iovec pieces[] = {{got.data(), 2}, {got.data() + 2, 3}};
  std::memcpy(memory_.data() + 5, "hello", 5);
  EXPECT_FALSE(placer_.Fetch(7, kOffset + 5, pieces, 5)) << "early";
  llp::TaggedBuffer buffer = Buffer(7);
  buffer.writable = false;
  ASSERT_TRUE(granter_.Open(buffer));
  EXPECT_TRUE(placer_.Fetch(7, kOffset + 5, pieces, 5));
  EXPECT_EQ(got, "hello");
  EXPECT_FALSE(Place(7, kOffset, "x")) << "it may only be read";
  EXPECT_FALSE(placer_.Fetch(7, kOffset - 1, pieces, 5));
  EXPECT_FALSE(placer_.Fetch(7, kOffset + memory_.size() - 4, pieces, 5));
  EXPECT_FALSE(placer_.Fetch(7, ~uint64_t{0} - 2, pieces, 5));
  EXPECT_FALSE(placer_.Fetch(8, kOffset, pieces, 5));
  buffer = Buffer(8);
  buffer.readable = false;
  ASSERT_TRUE(granter_.Open(buffer));
  EXPECT_FALSE(placer_.Fetch(8, kOffset, pieces, 5)) << "it may only be written";
  EXPECT_TRUE(Place(8, kOffset, "x"));
  granter_.ShutAll();
  EXPECT_FALSE(placer_.Fetch(7, kOffset + 5, pieces, 5));
  EXPECT_TRUE(placer_.reaches());
}

TEST_F(GrantsTest, NothingIsPlacedOutside) {
  ASSERT_TRUE(granter_.Open(Buffer(7)));
  EXPECT_FALSE(Place(7, kOffset - 1, "ab"));
  EXPECT_FALSE(Place(7, kOffset + memory_.size() - 1, "ab"));
  EXPECT_FALSE(Place(7, kOffset + memory_.size(), "a"));
  EXPECT_FALSE(Place(7, ~uint64_t{0}, "ab"));
  EXPECT_FALSE(Place(7, 0, "ab"));
  EXPECT_TRUE(Place(7, kOffset, "a"));
  EXPECT_TRUE(Place(7, kOffset + memory_.size() - 2, "yz"));
  EXPECT_EQ(At(4094, 2), "yz");
}

TEST_F(GrantsTest, WhatIsShutIsNot) {
  ASSERT_TRUE(granter_.Open(Buffer(7)));
  granter_.Shut(memory_.data() + memory_.size(), 10);
  EXPECT_TRUE(Place(7, kOffset, "a")) << "that was behind it";
  granter_.Shut(memory_.data() + 4000, 1);
  EXPECT_FALSE(granter_.IsOpen(7));
  EXPECT_FALSE(Place(7, kOffset, "b"));
  ASSERT_TRUE(granter_.Open(Buffer(7)));
  ASSERT_TRUE(granter_.Open(Buffer(Rival(7))));
  EXPECT_TRUE(granter_.IsOpen(7)) << "there are other places";
  EXPECT_TRUE(Place(7, kOffset, "c"));
  EXPECT_TRUE(Place(Rival(7), kOffset, "d"));
  granter_.ShutAll();
  EXPECT_FALSE(Place(Rival(7), kOffset, "e"));
  EXPECT_EQ(At(0, 2), "d.");
}

TEST_F(GrantsTest, MemoryThatIsNotThereIsNotTheEnd) {
  llp::TaggedBuffer buffer = Buffer(7);
  buffer.memory = nullptr;
  buffer.memory += 4096;
  ASSERT_TRUE(granter_.Open(buffer));
  EXPECT_FALSE(Place(7, kOffset, "a"));
  ASSERT_TRUE(granter_.Open(Buffer(8)));
  EXPECT_TRUE(Place(8, kOffset, "a"));
}

TEST_F(GrantsTest, NobodyPlacesOnceItIsShut) {
  std::atomic<bool> done{false};
  std::atomic<uint64_t> placed{0};
  std::thread peer([&] {
    const std::string text(memory_.size(), 'p');
    while (!done.load()) placed += Place(7, kOffset, text);
  });
  for (int round = 0; round < 2000 || placed.load() == 0; ++round) {
    ASSERT_TRUE(granter_.Open(Buffer(7)));
    if (round % 2 == 0) std::this_thread::yield();
    granter_.Shut(memory_.data(), 1);
    while (!granter_.Settled(memory_.data(), 1)) std::this_thread::yield();
    std::memset(memory_.data(), 'o', memory_.size());
    for (int i = 0; i < 50; ++i) ASSERT_EQ(*const_cast<volatile uint8_t*>(&memory_[memory_.size() - 1]), 'o') << "round " << round;
  }
  done = true;
  peer.join();
}

TEST_F(GrantsTest, NobodyReadsOnceItIsShut) {
  std::atomic<bool> done{false};
  std::atomic<uint64_t> fetched{0}, secrets{0};
  std::thread peer([&] {
    std::string got(memory_.size(), '-');
    const iovec piece{got.data(), got.size()};
    while (!done.load()) {
      if (!placer_.Fetch(7, kOffset, {&piece, 1}, got.size())) continue;
      ++fetched;
      secrets += got.find('s') != std::string::npos;
    }
  });
  for (int round = 0; round < 2000 || fetched.load() < 1000; ++round) {
    ASSERT_TRUE(granter_.Open(Buffer(7)));
    if (round % 2 == 0) std::this_thread::yield();
    granter_.Shut(memory_.data(), 1);
    while (!granter_.Settled(memory_.data(), 1)) std::this_thread::yield();
    for (int i = 0; i < 10; ++i) std::memset(memory_.data(), 's', memory_.size());  // the program's again
    std::memset(memory_.data(), 'o', memory_.size());
  }
  done = true;
  peer.join();
  EXPECT_EQ(secrets.load(), 0u);
}

TEST_F(GrantsTest, ManyBuffersAreOpenAtOnce) {
  std::vector<uint32_t> tags{7};
  while (tags.size() < kGrants) tags.push_back(Rival(tags.back()));  // all of which want one place
  for (const uint32_t tag : tags) ASSERT_TRUE(granter_.Open(Buffer(tag)));
  for (const uint32_t tag : tags) EXPECT_TRUE(granter_.IsOpen(tag) && Place(tag, kOffset, "x")) << tag;
  const uint32_t another = Rival(tags.back());
  ASSERT_TRUE(granter_.Open(Buffer(another)));
  EXPECT_TRUE(Place(another, kOffset, "x"));
  size_t open = 0;
  for (const uint32_t tag : tags) open += Place(tag, kOffset, "x");
  EXPECT_EQ(open, kGrants - 1) << "one was given up for it";
}

TEST_F(GrantsTest, APlaceThatThePeerUsesIsGivenToNobody) {
  ASSERT_TRUE(granter_.Open(Buffer(7)));
  words_.placing = InUse(HomeOf(7), /*reads=*/false);
  granter_.ShutAll();
  EXPECT_FALSE(granter_.IsOpen(7)) << "it is shut all the same";
  EXPECT_FALSE(granter_.Settled(memory_.data() + 10, 5));
  EXPECT_TRUE(granter_.Settled(memory_.data() + memory_.size(), 5));
  ASSERT_TRUE(granter_.Open(Buffer(Rival(7))));
  EXPECT_NE(words_.keys[HomeOf(7)].load(), KeyOf(Rival(7)));
  EXPECT_FALSE(granter_.Settled(memory_.data(), 1)) << "another buffer's peer is not this one's";
  words_.placing = 0;
  EXPECT_TRUE(granter_.Settled(memory_.data(), memory_.size()));
}

TEST_F(GrantsTest, AReaderIsNotWaitedForAndGetsNothing) {
  ASSERT_TRUE(granter_.Open(Buffer(7)));
  words_.placing = InUse(HomeOf(7), /*reads=*/true);
  granter_.ShutAll();
  EXPECT_TRUE(granter_.Settled(memory_.data(), memory_.size())) << "what it reads it throws away (NobodyReadsOnceItIsShut)";
  ASSERT_TRUE(granter_.Open(Buffer(Rival(7))));
  EXPECT_NE(words_.keys[HomeOf(7)].load(), KeyOf(Rival(7))) << "but it is told from others by its place";
}

TEST_F(GrantsTest, NonsenseInThePeersWordIsNobody) {
  ASSERT_TRUE(granter_.Open(Buffer(7)));
  words_.placing = 99;
  granter_.ShutAll();
  EXPECT_TRUE(granter_.Settled(memory_.data(), memory_.size()));
}

}  // namespace
}  // namespace weft::host
