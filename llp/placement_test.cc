#include "llp/placement.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
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

TEST(PlacementTest, WhatTheProgramHasUnmappedIsAnError) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const gone = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  OnAThreadOfOurs([&] {
    const iovec memory{gone, kBytes.size()};
    Placement placement;
    placement.Start({&memory, 1}, /*ours=*/false);
    EXPECT_FALSE(placement.Copy(kBytes));
  });
  munmap(gone, page);
}

}  // namespace
}  // namespace weft::llp
