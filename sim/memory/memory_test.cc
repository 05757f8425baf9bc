#include "sim/memory/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <string>
#include <thread>
#include <vector>

namespace weft::sim {
namespace {

constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;

class MemoryTableTest : public ::testing::Test {
 protected:
  uint64_t At(size_t offset) const { return reinterpret_cast<uint64_t>(bytes_.data()) + offset; }
  RegionInfo Register(size_t offset = 0, size_t length = 4096, int access = kAll) {
    return table_.Register(pd_, At(offset), length, At(offset), access).value();
  }
  bool Readable(ddp::STag stag, uint64_t offset, uint32_t length, WindowOwner owner = 1) {
    return table_.ResolveRemote(pd_, stag, offset, length, IBV_ACCESS_REMOTE_READ, {.owner = owner}).ok();
  }

  MemoryTable table_;
  Pd pd_{1}, other_pd_{2};
  alignas(4096) std::array<uint8_t, 4096> bytes_{};
};

TEST_F(MemoryTableTest, ChecksEveryBoundaryOfARegion) {
  const RegionInfo region = Register(100, 50);
  EXPECT_TRUE(Readable(region.stag, At(100), 50));
  EXPECT_TRUE(Readable(region.stag, At(149), 1));
  EXPECT_FALSE(Readable(region.stag, At(99), 1));
  EXPECT_FALSE(Readable(region.stag, At(149), 2));
  EXPECT_FALSE(Readable(region.stag, At(150), 1));
  EXPECT_EQ(table_.ResolveRemote(pd_, region.stag, UINT64_MAX, 2, IBV_ACCESS_REMOTE_READ).error(),
            rdmap::AccessError::kOffsetWrap);
  EXPECT_EQ(table_.ResolveRemote(other_pd_, region.stag, At(100), 1, IBV_ACCESS_REMOTE_READ).error(),
            rdmap::AccessError::kStagNotAssociated);
  EXPECT_EQ(table_.ResolveRemote(pd_, region.stag, At(100), 1, IBV_ACCESS_REMOTE_ATOMIC).error(),
            rdmap::AccessError::kAccessRights);
}

TEST_F(MemoryTableTest, RemembersWhoLookedARegionUp) {
  const MemoryUser one = MemoryUser::QueuePair(0x8103, 1), two = MemoryUser::QueuePair(0x8204, 2), three = MemoryUser::QueuePair(5, 3);
  RegionInfo gone;
  ASSERT_EQ(table_.Deregister(Register().stag, &gone), 0);
  EXPECT_EQ(gone.users, 0u) << "nobody: none need be asked";

  RegionInfo region = Register();
  EXPECT_TRUE(table_.ResolveRemote(pd_, region.stag, At(0), 1, IBV_ACCESS_REMOTE_READ, one).ok());
  EXPECT_NE(table_.ResolveLocal(pd_, region.stag.value, At(0), 1, false, false, two), nullptr);
  ASSERT_TRUE(table_.Reregister(region.stag, pd_, At(0), 4096, At(0), kAll, &gone).ok());
  EXPECT_EQ(gone.users, one.as | two.as);
  ASSERT_EQ(table_.Deregister(region.stag, &gone), 0);
  EXPECT_EQ(gone.users, 0u) << "of the new memory";

  region = Register();
  const ddp::STag window = table_.AllocateWindow(pd_, IBV_MW_TYPE_1).value();
  ASSERT_TRUE(table_.BindWindow(pd_, 1, {window, region.stag, At(0), 4096, IBV_ACCESS_REMOTE_READ}));
  EXPECT_TRUE(table_.ResolveRemote(pd_, window, At(0), 1, IBV_ACCESS_REMOTE_READ, three).ok());
  ASSERT_TRUE(table_.DeallocateWindow(window, &gone));
  EXPECT_EQ(gone.users, three.as);
  ASSERT_EQ(table_.Deregister(region.stag, &gone), 0);
  EXPECT_EQ(gone.users, three.as) << "through the window";
}

TEST_F(MemoryTableTest, AFreedKeyIsNotGivenOutAgainSoon) {
  std::deque<uint32_t> last;
  for (int i = 0; i < 1000; ++i) {
    const RegionInfo region = Register();
    EXPECT_EQ(std::count(last.begin(), last.end(), region.stag.value), 0) << i;
    last.push_back(region.stag.value);
    if (last.size() > 64) last.pop_front();
    EXPECT_EQ(table_.Deregister(region.stag), 0);
    EXPECT_EQ(table_.Deregister(region.stag), ENOENT);
    EXPECT_FALSE(Readable(region.stag, At(0), 1));
  }
}

TEST_F(MemoryTableTest, AWindowNamesTheRegionBehindIt) {
  const RegionInfo region = Register();
  const ddp::STag window = table_.AllocateWindow(pd_, IBV_MW_TYPE_2).value();
  ASSERT_TRUE(table_.BindWindow(pd_, 7, {window, region.stag, At(10), 20, IBV_ACCESS_REMOTE_READ}));
  ddp::STag behind;
  auto memory = table_.ResolveRemote(pd_, window, At(12), 18, IBV_ACCESS_REMOTE_READ, {.owner = 7}, &behind);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(*memory, bytes_.data() + 12);
  EXPECT_EQ(behind, region.stag);
  EXPECT_EQ(table_.ResolveRemote(pd_, window, At(12), 19, IBV_ACCESS_REMOTE_READ, {.owner = 7}).error(), rdmap::AccessError::kBounds);
  EXPECT_EQ(table_.ResolveRemote(pd_, window, At(12), 1, IBV_ACCESS_REMOTE_READ, {.owner = 8}).error(),
            rdmap::AccessError::kStagNotAssociated);
  EXPECT_EQ(table_.Deregister(window), ENOENT) << "not a region";
  EXPECT_FALSE(table_.DeallocateWindow(region.stag)) << "not a window";
  EXPECT_FALSE(table_.Invalidate(pd_, region.stag)) << "a window is bound to it";
  EXPECT_FALSE(table_.Invalidate(pd_, window, 8)) << "not its owner";
  EXPECT_TRUE(table_.Invalidate(pd_, window, 7));
  EXPECT_FALSE(table_.Invalidate(pd_, window, 7));
  EXPECT_EQ(table_.Deregister(region.stag), 0);
}

TEST_F(MemoryTableTest, APeerInvalidatesWindowsOfTypeTwoOfItsOwnStreamOnly) {
  const RegionInfo region = Register();
  const ddp::STag window = table_.AllocateWindow(pd_, IBV_MW_TYPE_2).value(), first = table_.AllocateWindow(pd_, IBV_MW_TYPE_1).value();
  EXPECT_EQ(table_.InvalidateForPeer(pd_, region.stag, 7), rdmap::AccessError::kAccessRights);
  EXPECT_EQ(table_.InvalidateForPeer(pd_, window, 7), rdmap::AccessError::kInvalidStag) << "it is not bound";
  ASSERT_TRUE(table_.BindWindow(pd_, 7, {window, region.stag, At(10), 20, IBV_ACCESS_REMOTE_READ}));
  ASSERT_TRUE(table_.BindWindow(pd_, 7, {first, region.stag, At(10), 20, IBV_ACCESS_REMOTE_READ}));
  EXPECT_EQ(table_.InvalidateForPeer(pd_, first, 7), rdmap::AccessError::kAccessRights);
  EXPECT_EQ(table_.InvalidateForPeer(pd_, window, 8), rdmap::AccessError::kStagNotAssociated);
  EXPECT_EQ(table_.InvalidateForPeer(other_pd_, window, 7), rdmap::AccessError::kStagNotAssociated);
  EXPECT_EQ(table_.InvalidateForPeer(pd_, ddp::STag(window.value ^ 1), 7), rdmap::AccessError::kInvalidStag);
  const RegionInfo null = table_.RegisterNull(pd_).value();
  EXPECT_EQ(table_.InvalidateForPeer(pd_, null.stag, 7), rdmap::AccessError::kInvalidStag);
  EXPECT_TRUE(Readable(window, At(10), 20, 7));
  EXPECT_TRUE(Readable(region.stag, At(0), 1));

  RegionInfo was;
  EXPECT_EQ(table_.InvalidateForPeer(pd_, window, 7, &was), std::nullopt);
  EXPECT_EQ(was.stag, window);
  EXPECT_EQ(was.address, At(10));
  EXPECT_EQ(was.length, 20u);
  EXPECT_EQ(was.owner, 7u);
  EXPECT_FALSE(Readable(window, At(10), 20, 7));
  EXPECT_TRUE(table_.DeallocateWindow(window, &was));
  EXPECT_EQ(was.length, 0u) << "it was not bound any more";
}

TEST_F(MemoryTableTest, SaysWhatIsWrongWithAKeyOrARange) {
  const RegionInfo region = Register(0, 100, 0);
  const uint32_t key = region.stag.value;
  const auto explain = [&](const Pd& pd, uint32_t lkey, uint32_t length, bool write) {
    return table_.ExplainLocal(pd, lkey, At(0), length, write, false);
  };
  EXPECT_EQ(explain(pd_, key, 100, false), "");
  EXPECT_NE(explain(pd_, key, 101, false).find("100 bytes from 0x"), std::string::npos) << explain(pd_, key, 101, false);
  EXPECT_NE(explain(pd_, key, 100, true).find("without IBV_ACCESS_LOCAL_WRITE"), std::string::npos);
  EXPECT_NE(explain(other_pd_, key, 100, false).find("another protection domain"), std::string::npos);
  EXPECT_NE(explain(pd_, key ^ 1, 100, false).find("no region with this key"), std::string::npos);
  EXPECT_NE(explain(pd_, table_.AllocateWindow(pd_, IBV_MW_TYPE_1)->value, 1, false).find("memory window"), std::string::npos);
  EXPECT_TRUE(table_.Invalidate(pd_, region.stag));
  EXPECT_NE(explain(pd_, key, 100, false).find("invalidated"), std::string::npos);
}

TEST_F(MemoryTableTest, AWindowOfAnotherDomainIsNotBound) {
  const RegionInfo region = Register();
  const ddp::STag window = table_.AllocateWindow(other_pd_, IBV_MW_TYPE_1).value();
  EXPECT_FALSE(table_.BindWindow(pd_, 1, {window, region.stag, At(0), 10, IBV_ACCESS_REMOTE_READ}));
  EXPECT_FALSE(table_.BindWindow(other_pd_, 1, {window, region.stag, At(0), 10, IBV_ACCESS_REMOTE_READ}));
  EXPECT_EQ(table_.Deregister(region.stag), 0);
}

// Whoever may look through a window sees the range that one bind gave it, or nothing.
TEST_F(MemoryTableTest, ThreadsThatBindInvalidateAndLookAgree) {
  const RegionInfo region = Register();
  constexpr int kBinds = 20000;
  const ddp::STag window = table_.AllocateWindow(pd_, IBV_MW_TYPE_2).value();
  const ddp::STag moving = table_.AllocateWindow(pd_, IBV_MW_TYPE_1).value();
  const auto bind = [&](ddp::STag of, uint32_t key) {
    return table_.BindWindow(pd_, 1, {ddp::STag((of.value & ~0xffu) | key), region.stag, At(key * 16), 16, IBV_ACCESS_REMOTE_READ});
  };
  ASSERT_TRUE(bind(moving, 0));
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!over) {
        for (uint32_t key = 0; key < 256; ++key) {
          for (ddp::STag stag : {ddp::STag((window.value & ~0xffu) | key), ddp::STag((moving.value & ~0xffu) | key)}) {
            auto memory = table_.ResolveRemote(pd_, stag, At(key * 16), 16, IBV_ACCESS_REMOTE_READ, {.owner = 1});
            if (memory.ok()) {
              EXPECT_EQ(*memory, bytes_.data() + key * 16);
            }
          }
        }
        EXPECT_NE(table_.Deregister(region.stag), 0) << "the moving window is always bound";
      }
    });
  }
  for (uint32_t i = 0; i < kBinds; ++i) {
    const uint32_t key = i % 256;
    ASSERT_TRUE(bind(window, key));
    ASSERT_TRUE(bind(moving, key));
    ASSERT_FALSE(bind(window, key));
    ASSERT_TRUE(table_.Invalidate(pd_, ddp::STag((window.value & ~0xffu) | key), 1));
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(table_.DeallocateWindow(moving));
  EXPECT_TRUE(table_.DeallocateWindow(window));
  EXPECT_EQ(table_.Deregister(region.stag), 0);
}

}  // namespace
}  // namespace weft::sim
