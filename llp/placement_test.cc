#include "llp/placement.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>

#include "base/program_memory.h"
#include "base/testing/kernel_copies.h"

namespace weft::llp {
namespace {

constexpr std::array<uint8_t, 6> kBytes{1, 2, 3, 4, 5, 6};

// As a thread of Weft's.
template <typename Work>
void OnAThreadOfOurs(const Work& work) {
  std::thread([&work] {
    SetThreadOfOurs();
    work();
  }).join();
}

TEST(PlacementTest, TheKernelPlacesWhatIsTheProgramsOnly) {
  OnAThreadOfOurs([] {
    for (const bool ours : {false, true}) {
      std::array<uint8_t, 4> first{};
      std::array<uint8_t, 2> second{};
      const iovec memory[] = {{first.data(), first.size()}, {second.data(), second.size()}};
      Placement placement;
      placement.Start(memory, ours);
      const unsigned before = weft::testing::KernelCopies();
      EXPECT_TRUE(placement.Copy(kBytes));
      EXPECT_EQ(std::memcmp(first.data(), kBytes.data(), first.size()), 0) << ours;
      EXPECT_EQ(std::memcmp(second.data(), kBytes.data() + first.size(), second.size()), 0) << ours;
      EXPECT_EQ(weft::testing::KernelCopies() - before, ours ? 0u : 2u);
    }
  });
}

iovec PieceOf(const std::string& text) { return {const_cast<char*>(text.data()), text.size()}; }

// Bytes of several places into memory of several places, whose bounds are others.
void CopyAllOf(unsigned calls) {
  const std::string one = "a man", two, three = " a plan a canal", four = " panama";
  std::array<char, 40> memory{};
  const std::array<iovec, 3> into{{{&memory[0], 9}, {&memory[10], 0}, {&memory[20], 20}}};
  Placement placement;
  placement.Start(into, /*ours=*/false);
  ASSERT_TRUE(placement.Copy({reinterpret_cast<const uint8_t*>("--"), 2}));
  const unsigned before = weft::testing::KernelCopies();
  const std::array<iovec, 3> first{PieceOf(one), PieceOf(two), PieceOf(three)};
  ASSERT_TRUE(placement.CopyAll(first));
  EXPECT_EQ(weft::testing::KernelCopies() - before, calls);
  const std::array<iovec, 1> last{PieceOf(four)};
  ASSERT_TRUE(placement.CopyAll(last));
  EXPECT_EQ(std::string(&memory[0], 10), std::string("--a man a") + '\0');
  EXPECT_EQ(std::string(&memory[20], 20), std::string(" plan a canal panama"));
}

TEST(PlacementTest, CopiesBytesOfManyPlaces) { CopyAllOf(0); }
TEST(PlacementTest, CopiesBytesOfManyPlacesWithOneCallOfTheKernel) {
  OnAThreadOfOurs([] { CopyAllOf(1); });
}

// More places than one system call is given.
TEST(PlacementTest, CopiesIntoManyPlacesOnAThreadOfOurs) {
  OnAThreadOfOurs([] {
    std::array<char, 60> memory{};
    std::array<iovec, 20> into;
    for (size_t i = 0; i < into.size(); ++i) into[i] = {&memory[i * 3], 2};
    Placement placement;
    placement.Start(into, /*ours=*/false);
    const std::string text = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN";
    const std::array<iovec, 2> from{{{const_cast<char*>(text.data()), 5}, {const_cast<char*>(text.data() + 5), 35}}};
    ASSERT_TRUE(placement.CopyAll(from));
    for (size_t i = 0; i < into.size(); ++i) EXPECT_EQ(std::memcmp(&memory[i * 3], &text[i * 2], 2), 0) << i;
  });
}

TEST(PlacementTest, WhatTheProgramHasUnmappedIsAnError) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const gone = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  OnAThreadOfOurs([&] {
    const iovec memory{gone, kBytes.size()};
    Placement placement;
    placement.Start({&memory, 1}, /*ours=*/false);
    EXPECT_FALSE(placement.Copy(kBytes));
    const std::string text = "0123";
    const std::array<iovec, 2> from{PieceOf(text), PieceOf(text)};
    Placement all;
    const iovec more{gone, 8};
    all.Start({&more, 1}, /*ours=*/false);
    EXPECT_FALSE(all.CopyAll(from));
  });
  munmap(gone, page);
}

}  // namespace
}  // namespace weft::llp
