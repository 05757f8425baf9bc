#include "sim/memory/recent_regions.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace weft::sim {
namespace {

class RecentRegionsTest : public ::testing::Test {
 protected:
  static constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

  uint64_t At(size_t offset) const { return reinterpret_cast<uint64_t>(bytes_.data()) + offset; }
  RegionInfo Register(size_t offset, size_t length, int access = kAll) {
    return table_.Register(pd_, At(offset), length, At(offset), access).value();
  }
  uint8_t* Resolve(const RegionInfo& region, size_t offset, uint32_t length, bool write = false) {
    return recent_.Resolve(pd_, region.stag.value, At(offset), length, write, /*remote_write=*/false);
  }

  alignas(4096) std::array<uint8_t, 4096> bytes_{};
  MemoryTable table_;
  Pd pd_{1}, other_pd_{2};
  RecentRegions recent_{table_, MemoryUser::QueuePair(3, 1)};
};

TEST_F(RecentRegionsTest, ChecksEachElementAsTheTableDoes) {
  const RegionInfo region = Register(100, 50), readable = Register(0, 64, 0);
  for (int time = 0; time < 2; ++time) {  // found, and then remembered
    EXPECT_EQ(Resolve(region, 100, 50), bytes_.data() + 100);
    EXPECT_EQ(Resolve(region, 149, 1, true), bytes_.data() + 149);
    EXPECT_EQ(Resolve(region, 150, 0), bytes_.data() + 150);
    EXPECT_EQ(Resolve(region, 99, 1), nullptr);
    EXPECT_EQ(Resolve(region, 149, 2), nullptr);
    EXPECT_EQ(recent_.Resolve(pd_, region.stag.value, UINT64_MAX, 2, false, false), nullptr);
    EXPECT_EQ(recent_.Resolve(pd_, region.stag.value ^ 1, At(100), 1, false, false), nullptr) << "another key";
    EXPECT_EQ(Resolve(region, 100, 50), bytes_.data() + 100);
    EXPECT_EQ(recent_.Resolve(other_pd_, region.stag.value, At(100), 1, false, false), nullptr);
    EXPECT_EQ(Resolve(readable, 0, 64), bytes_.data());
    EXPECT_EQ(Resolve(readable, 0, 64, true), nullptr) << "it may only be read";
  }
}

TEST_F(RecentRegionsTest, KeepsAsManyApartAsThereAre) {
  std::vector<RegionInfo> regions;
  for (size_t i = 0; i < 5; ++i) regions.push_back(Register(i * 100, 50));
  for (const size_t i : {0, 1, 0, 1, 2, 0, 3, 4, 4, 2, 1}) {
    EXPECT_EQ(Resolve(regions[i], i * 100, 50), bytes_.data() + i * 100) << i;
    EXPECT_EQ(Resolve(regions[i], i * 100, 51), nullptr) << i;
  }
}

TEST_F(RecentRegionsTest, ForgetsWhatIsGone) {
  RegionInfo region = Register(0, 64);
  ASSERT_NE(Resolve(region, 0, 64), nullptr);
  RegionInfo gone;
  ASSERT_EQ(table_.Deregister(region.stag, &gone), 0);
  EXPECT_EQ(gone.users, MemoryUser::QueuePair(3, 1).as) << "who is asked to let go of it";
  EXPECT_EQ(Resolve(region, 0, 64), nullptr);

  region = Register(0, 64);
  ASSERT_NE(Resolve(region, 0, 64), nullptr);
  ASSERT_TRUE(table_.Reregister(region.stag, pd_, At(128), 64, At(128), kAll).ok());
  EXPECT_EQ(Resolve(region, 0, 64), nullptr);
  EXPECT_EQ(Resolve(region, 128, 64), bytes_.data() + 128);
  ASSERT_EQ(table_.Deregister(region.stag, &gone), 0);
  EXPECT_EQ(gone.users, MemoryUser::QueuePair(3, 1).as) << "it was looked up again";

  region = Register(0, 64);
  ASSERT_NE(Resolve(region, 0, 64), nullptr);
  ASSERT_TRUE(table_.Invalidate(pd_, region.stag));
  EXPECT_EQ(Resolve(region, 0, 64), nullptr);
}

TEST_F(RecentRegionsTest, LooksAtPagesOnDemandEachTime) {
  const RegionInfo region = Register(0, 64, kAll | IBV_ACCESS_ON_DEMAND);
  EXPECT_EQ(Resolve(region, 0, 64), bytes_.data());
  EXPECT_EQ(Resolve(region, 0, 64), bytes_.data());
  const RegionInfo everything = table_.Register(pd_, 0, SIZE_MAX, 0, kAll | IBV_ACCESS_ON_DEMAND).value();
  EXPECT_EQ(recent_.Resolve(pd_, everything.stag.value, At(0), 64, false, false), bytes_.data());
  EXPECT_EQ(recent_.Resolve(pd_, everything.stag.value, 8, 64, false, false), nullptr) << "nobody's page";
  EXPECT_EQ(recent_.Resolve(pd_, everything.stag.value, At(0), 64, false, false), bytes_.data());
}

}  // namespace
}  // namespace weft::sim
