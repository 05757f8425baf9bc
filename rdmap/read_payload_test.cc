#include "rdmap/read_payload.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/program_memory.h"
#include "base/testing/kernel_copies.h"
#include "rdmap/testing/fake_host.h"
#include "rdmap/testing/segments.h"

namespace weft::rdmap {
namespace {

constexpr ddp::STag kRegion{0x100}, kGone{0x200};
constexpr size_t kSize = 8192;

// A region, and one whose memory the program has unmapped.
class ReadPayloadTest : public ::testing::Test {
 protected:
  ReadPayloadTest() {
    host_.AddRegion(kRegion, 0, kSize).bytes = testing::Pattern(kSize);
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    gone_ = mmap(nullptr, page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    host_.AddRegion(kGone, 0, page_).elsewhere = static_cast<uint8_t*>(gone_);
  }
  ~ReadPayloadTest() override { munmap(gone_, page_); }

  // Asks for so many bytes.
  void Ask(uint64_t offset, uint32_t length, ddp::STag region = kRegion) {
    reads_.Push({.header = {.length = length, .source_stag = region, .source_offset = ddp::TaggedOffset(offset)}});
  }
  // The oldest is answered, and is as it should be.
  void Answer(bool ours) {
    const ReadRequestHeader& read = reads_.front().header;
    const auto found = payload_.Find(read.length, /*alone=*/false);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->ours, ours);
    const testing::Bytes& bytes = host_.FindRegion(kRegion)->bytes;
    EXPECT_TRUE(std::equal(found->bytes, found->bytes + read.length, bytes.begin() + static_cast<ptrdiff_t>(read.source_offset.value)));
    reads_.Pop();
  }
  // `work` on a thread of Weft's: how often the kernel copied.
  template <typename Work>
  unsigned CopiesOf(const Work& work) {
    const unsigned before = weft::testing::KernelCopies();
    std::thread([&work] {
      SetThreadOfOurs();
      work();
    }).join();
    return weft::testing::KernelCopies() - before;
  }

  testing::FakeHost host_;
  FixedRing<InboundRead> reads_{64};
  ReadPayload payload_{host_, reads_};
  size_t page_ = 0;
  void* gone_ = nullptr;
};

TEST_F(ReadPayloadTest, ShortReadsThatWaitAreCopiedTogether) {
  for (uint64_t i = 0; i < 16; ++i) Ask(i * 100, 8);
  EXPECT_EQ(CopiesOf([this] {
              while (!reads_.empty()) Answer(/*ours=*/true);
            }),
            1u);
}

TEST_F(ReadPayloadTest, MoreThanFitAreCopiedInSeveralCalls) {
  for (uint64_t i = 0; i < 40; ++i) Ask(i, 1);
  EXPECT_EQ(CopiesOf([this] {
              while (!reads_.empty()) Answer(/*ours=*/true);
            }),
            2u);
  for (uint64_t i = 0; i < 5; ++i) Ask(i * 512, ReadPayload::kShort);
  EXPECT_EQ(CopiesOf([this] {
              while (!reads_.empty()) Answer(/*ours=*/true);
            }),
            2u);
}

TEST_F(ReadPayloadTest, AThreadOfTheProgramSendsThemFromWhereTheyLie) {
  for (uint64_t i = 0; i < 3; ++i) Ask(i * 100, 8);
  const unsigned before = weft::testing::KernelCopies();
  while (!reads_.empty()) Answer(/*ours=*/false);
  EXPECT_EQ(weft::testing::KernelCopies(), before);
}

TEST_F(ReadPayloadTest, ALongOneIsSentFromWhereItLiesInItsTurn) {
  Ask(0, 8);
  Ask(100, ReadPayload::kShort + 1);
  Ask(200, 16);
  CopiesOf([this] {
    Answer(/*ours=*/true);
    Answer(/*ours=*/false);
    Answer(/*ours=*/true);
  });
  EXPECT_TRUE(reads_.empty());
}

TEST_F(ReadPayloadTest, LongOnesThatWaitAreCheckedTogether) {
  for (uint64_t i = 0; i < 8; ++i) Ask(i * 700, 600);
  Ask(0, 8);
  Ask(0, 4096);
  EXPECT_EQ(CopiesOf([this] {
              for (int i = 0; i < 8; ++i) Answer(/*ours=*/false);
            }),
            1u);
  EXPECT_EQ(host_.resolved, 8u + 7u);  // each in its turn, and those behind the first before
  CopiesOf([this] {
    Answer(/*ours=*/true);
    Answer(/*ours=*/false);
  });
}

TEST_F(ReadPayloadTest, LongOnesThatAreNotThereFailInTheirTurn) {
  for (size_t before = 0; before < 4; ++before) {
    for (size_t i = 0; i < before; ++i) Ask(i * 100, 1000);
    Ask(0, 600, kGone);
    Ask(0, 1000);
    CopiesOf([this, before] {
      for (size_t i = 0; i < before; ++i) Answer(/*ours=*/false);
      const auto found = payload_.Find(600, /*alone=*/false);
      ASSERT_FALSE(found) << before;
      EXPECT_EQ(found.error(), AccessError::kBounds) << before;
    });
    while (!reads_.empty()) reads_.Pop();
    payload_.Forget();
  }
}

TEST_F(ReadPayloadTest, AtomicsAndEmptyReadsBetweenThemHaveNone) {
  Ask(0, 8);
  reads_.Push({.is_atomic = true});
  Ask(0, 0, ddp::STag(0xbad));
  Ask(500, 32);
  EXPECT_EQ(CopiesOf([this] {
              Answer(/*ours=*/true);
              reads_.Pop();
              reads_.Pop();
              Answer(/*ours=*/true);
            }),
            1u);
}

TEST_F(ReadPayloadTest, OnesThatAreNotThereFailInTheirTurn) {
  for (const bool refused : {false, true}) {
    for (size_t before = 0; before < 4; ++before) {
      for (size_t i = 0; i < before; ++i) Ask(i * 100, 24);
      Ask(0, 8, refused ? ddp::STag(0xbad) : kGone);
      Ask(0, 8);
      CopiesOf([this, before, refused] {
        for (size_t i = 0; i < before; ++i) Answer(/*ours=*/true);
        const auto found = payload_.Find(8, /*alone=*/false);
        ASSERT_FALSE(found) << before;
        EXPECT_EQ(found.error(), refused ? AccessError::kInvalidStag : AccessError::kBounds) << before;
      });
      while (!reads_.empty()) reads_.Pop();
      payload_.Forget();
    }
  }
}

TEST_F(ReadPayloadTest, ALongOneThatIsNotThereIsFoundOut) {
  Ask(0, static_cast<uint32_t>(page_), kGone);
  CopiesOf([this] {
    const auto found = payload_.Find(static_cast<uint32_t>(page_), /*alone=*/false);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error(), AccessError::kBounds);
  });
}

TEST_F(ReadPayloadTest, TheRestOfALongOneIsItsEnd) {
  Ask(1000, 3000);
  CopiesOf([this] {
    const auto found = payload_.Find(100, /*alone=*/false);
    ASSERT_TRUE(found);
    const testing::Bytes& bytes = host_.FindRegion(kRegion)->bytes;
    EXPECT_TRUE(std::equal(found->bytes, found->bytes + 100, bytes.begin() + 3900));
  });
}

TEST_F(ReadPayloadTest, AloneOnlyTheOldestIsLookedUp) {
  Ask(0, 8);
  Ask(100, 8);
  CopiesOf([this] { EXPECT_TRUE(payload_.Find(8, /*alone=*/true)); });
  EXPECT_EQ(host_.resolved, 1u);
}

TEST_F(ReadPayloadTest, WhatWasForgottenIsLookedUpAnew) {
  Ask(0, 8);
  Ask(100, 8);
  CopiesOf([this] {
    Answer(/*ours=*/true);
    payload_.Forget();
    host_.FindRegion(kRegion)->valid = false;
    EXPECT_FALSE(payload_.Find(8, /*alone=*/false));
  });
}

}  // namespace
}  // namespace weft::rdmap
