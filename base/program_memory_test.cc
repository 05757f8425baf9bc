#include "base/program_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace weft {
namespace {

// Two pages, of which the second is not there.
class ProgramMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* const both = mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(both, MAP_FAILED);
    memory_ = static_cast<uint8_t*>(both);
    ASSERT_EQ(munmap(memory_ + page_, page_), 0);
  }
  void TearDown() override { munmap(memory_, page_); }

  size_t page_ = 0;
  uint8_t* memory_ = nullptr;
};

TEST_F(ProgramMemoryTest, WhatIsThereIsMoved) {
  const std::string text(page_, 't');
  ASSERT_TRUE(WriteProgramMemory(memory_, text.data(), text.size()));
  std::string got(page_, '-');
  ASSERT_TRUE(ReadProgramMemory(got.data(), memory_, got.size()));
  EXPECT_EQ(got, text);
  EXPECT_TRUE(ReadProgramMemory(got.data(), memory_ + page_, 0)) << "no byte is always there";
}

TEST_F(ProgramMemoryTest, WhatIsNotThereIsAnError) {
  std::string bytes(page_, 'b');
  EXPECT_FALSE(WriteProgramMemory(memory_ + page_, bytes.data(), 1));
  EXPECT_FALSE(ReadProgramMemory(bytes.data(), memory_ + page_, 1));
  EXPECT_FALSE(WriteProgramMemory(memory_ + 1, bytes.data(), page_)) << "the last byte is not";
  EXPECT_FALSE(ReadProgramMemory(bytes.data(), memory_ + 1, page_));
  EXPECT_FALSE(ReadProgramMemory(bytes.data(), nullptr, 1));
}

TEST_F(ProgramMemoryTest, WhatMayOnlyBeReadIsNotWritten) {
  ASSERT_EQ(mprotect(memory_, page_, PROT_READ), 0);
  char byte = 'x';
  EXPECT_FALSE(WriteProgramMemory(memory_, &byte, 1));
  EXPECT_TRUE(ReadProgramMemory(&byte, memory_, 1));
  EXPECT_EQ(byte, 0);
}

TEST_F(ProgramMemoryTest, PiecesAreScattered) {
  char header[] = "head", payload[] = "payload";
  const iovec from[] = {{header, 4}, {payload, 7}};
  const iovec to[] = {{memory_, 2}, {memory_ + 10, 6}};
  ASSERT_TRUE(ScatterToProgramMemory(to, from));
  EXPECT_EQ(std::memcmp(memory_, "he", 2), 0);
  EXPECT_EQ(std::memcmp(memory_ + 10, "adpayl\0", 7), 0);
  const iovec beyond[] = {{memory_, 2}, {memory_ + page_ - 1, 6}};
  EXPECT_FALSE(ScatterToProgramMemory(beyond, from));
}

TEST_F(ProgramMemoryTest, PiecesAreGatheredIntoPieces) {
  std::memcpy(memory_, "headpayload", 11);
  const iovec from[] = {{memory_ + 4, 7}, {memory_, 0}, {memory_, 4}};
  char one[3], two[8];
  const iovec to[] = {{one, 3}, {two, 8}};
  ASSERT_TRUE(GatherFromProgramMemory(to, from));
  EXPECT_EQ(std::string(one, 3) + std::string(two, 8), "payloadhead");
  const iovec beyond[] = {{memory_, 2}, {memory_ + page_ - 1, 6}};
  EXPECT_FALSE(GatherFromProgramMemory(to, beyond));
}

TEST_F(ProgramMemoryTest, PiecesAreGathered) {
  std::memcpy(memory_, "headpayload", 11);
  const iovec from[] = {{memory_ + 4, 7}, {memory_, 0}, {memory_, 4}};
  std::string got(11, '-');
  EXPECT_EQ(GatherProgramMemory(got.data(), from), 3u);
  EXPECT_EQ(got, "payloadhead");
}

TEST_F(ProgramMemoryTest, OfPiecesThatAreGatheredThoseInFrontOfAHoleAreWhole) {
  std::memcpy(memory_, "abcdef", 6);
  for (void* const gone : {static_cast<void*>(memory_ + page_ - 2), static_cast<void*>(memory_ + page_), reinterpret_cast<void*>(UINTPTR_MAX - 7)}) {
    for (size_t whole = 0; whole < 4; ++whole) {
      iovec from[] = {{memory_, 3}, {memory_ + 3, 1}, {memory_ + 4, 2}, {memory_, 6}};
      from[whole] = {gone, 4};
      std::string got(20, '-');
      EXPECT_EQ(GatherProgramMemory(got.data(), from), whole) << gone;
      const size_t bytes = whole == 3 ? 6 : whole == 2 ? 4 : 3 * whole;
      EXPECT_EQ(got.substr(0, bytes), std::string("abcdef").substr(0, bytes)) << gone;
    }
  }
}

TEST_F(ProgramMemoryTest, EachPageIsLookedAt) {
  iovec piece{memory_, page_};
  EXPECT_TRUE(IsProgramMemory({&piece, 1}));
  piece.iov_len = page_ + 1;
  EXPECT_FALSE(IsProgramMemory({&piece, 1}));
  piece = {memory_ + page_, 0};
  EXPECT_TRUE(IsProgramMemory({&piece, 1}));
}

TEST_F(ProgramMemoryTest, AFewPagesAreLookedAtWhateverStandsInThem) {
  auto* const few = static_cast<char*>(mmap(nullptr, 2 * page_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));  // not touched yet
  ASSERT_NE(few, MAP_FAILED);
  for (const size_t at : {size_t{0}, size_t{1}, page_ - 1}) {
    const iovec piece{few + at, page_ + 1};
    EXPECT_TRUE(IsProgramMemory({&piece, 1})) << at;
  }
  ASSERT_EQ(mprotect(few, page_, PROT_READ | PROT_WRITE), 0);
  few[0] = few[page_ - 1] = 'x';
  const iovec all{few, 2 * page_}, last{few + 2 * page_ - 1, 1};
  EXPECT_TRUE(IsProgramMemory({&all, 1}));
  ASSERT_EQ(munmap(few + page_, page_), 0);
  EXPECT_FALSE(IsProgramMemory({&all, 1}));
  EXPECT_FALSE(IsProgramMemory({&last, 1}));
  munmap(few, page_);
}

TEST_F(ProgramMemoryTest, AHoleAmongAddressesIsFound) {
  auto* const some = static_cast<char*>(mmap(nullptr, 4 * page_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(some, MAP_FAILED);
  EXPECT_TRUE(IsMapped(some, 4 * page_));
  EXPECT_TRUE(IsMapped(some + 5, 0));
  ASSERT_EQ(munmap(some + 2 * page_, page_), 0);
  EXPECT_FALSE(IsMapped(some, 4 * page_));
  EXPECT_TRUE(IsMapped(some + page_, page_));
  EXPECT_TRUE(IsMapped(some + 2 * page_ - 1, 1));
  EXPECT_FALSE(IsMapped(some + 2 * page_ - 1, 2));
  EXPECT_FALSE(IsMapped(some + 3 * page_ - 1, 1));
  EXPECT_TRUE(IsMapped(some + 3 * page_, page_));
  munmap(some, 4 * page_);
}

TEST_F(ProgramMemoryTest, EachOfManyPagesIsLookedAt) {
  constexpr size_t kPages = 200;
  auto* const many = static_cast<char*>(mmap(nullptr, kPages * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(many, MAP_FAILED);
  const iovec piece{many + 1, kPages * page_ - 2};
  EXPECT_TRUE(IsProgramMemory({&piece, 1}));
  for (const size_t gone : {size_t{0}, size_t{63}, size_t{64}, size_t{130}, kPages - 1}) {
    ASSERT_EQ(mprotect(many + gone * page_, page_, PROT_NONE), 0);
    EXPECT_FALSE(IsProgramMemory({&piece, 1})) << gone;
    ASSERT_EQ(mprotect(many + gone * page_, page_, PROT_READ), 0);
  }
  EXPECT_TRUE(IsProgramMemory({&piece, 1}));
  munmap(many, kPages * page_);
}

TEST_F(ProgramMemoryTest, PiecesThatAdjoinAreLookedAtLikeOne) {
  constexpr size_t kPages = 40;
  auto* const many = static_cast<char*>(mmap(nullptr, kPages * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(many, MAP_FAILED);
  for (const size_t length : {page_ / 2, page_, 3 * page_ + 100, 20 * page_}) {
    std::vector<iovec> pieces{{many, 0}};
    for (size_t at = 0; at + length <= kPages * page_; at += length) pieces.push_back({many + at, length});
    const size_t last = (pieces.size() - 1) * length - 1;
    pieces.push_back({many, 1});
    EXPECT_TRUE(IsProgramMemory(pieces)) << length;
    for (const size_t gone : {size_t{0}, length / page_, last / page_}) {
      ASSERT_EQ(mprotect(many + gone * page_, page_, PROT_NONE), 0);
      EXPECT_FALSE(IsProgramMemory(pieces)) << length << ' ' << gone;
      ASSERT_EQ(mprotect(many + gone * page_, page_, PROT_READ), 0);
    }
  }
  munmap(many, kPages * page_);
}

TEST_F(ProgramMemoryTest, AThreadOfOursSurvivesWhatIsGone) {
  EXPECT_FALSE(ThreadOfOurs());
  std::thread ours([this] {
    SetThreadOfOurs();
    char byte = 0;
    EXPECT_TRUE(CopyToProgram(memory_, "b", 1));
    EXPECT_TRUE(CopyFromProgram(&byte, memory_, 1));
    EXPECT_EQ(byte, 'b');
    EXPECT_FALSE(CopyToProgram(memory_ + page_, "b", 1));
    EXPECT_FALSE(CopyFromProgram(&byte, memory_ + page_, 1));
  });
  ours.join();
  EXPECT_FALSE(ThreadOfOurs()) << "that thread only";
}

}  // namespace
}  // namespace weft
