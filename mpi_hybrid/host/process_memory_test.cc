#include "mpi_hybrid/host/process_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/address_space_mark.h"

namespace weft::mpi::host {
namespace {

using Access = ProcessMemory::Access;

constexpr size_t kBytes = 1 << 20;

// A child, which has a copy of this memory, and tells its mark.
class ProcessMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<uint8_t>(i * 7);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    child_ = fork();
    if (child_ == 0) {
      const uint64_t mark = AddressSpaceMark();
      (void)!write(ends[1], &mark, sizeof mark);
      pause();
      _exit(0);
    }
    ASSERT_EQ(read(ends[0], &mark_, sizeof mark_), static_cast<ssize_t>(sizeof mark_));
    close(ends[0]);
    close(ends[1]);
  }
  void TearDown() override { End(); }
  void End() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }
  uint64_t At(size_t offset) const { return reinterpret_cast<uintptr_t>(memory_.data() + offset); }
  ProcessMemory::Claim Claim() const { return {.pid = child_, .mark = mark_, .cookie_address = At(0), .cookie = {memory_.data(), 16}}; }

  std::vector<uint8_t> memory_ = std::vector<uint8_t>(kBytes);
  pid_t child_ = 0;
  uint64_t mark_ = 0;
};

TEST_F(ProcessMemoryTest, IsReadAndWrittenInAnySize) {
  const auto memory = ProcessMemory::Of(Claim(), Access::kReadAndWrite);
  ASSERT_NE(memory, nullptr);
  for (const size_t bytes : {size_t{1}, size_t{8}, size_t{4096}, size_t{4097}, kBytes}) {
    std::vector<uint8_t> found(bytes);
    ASSERT_EQ(memory->Read(At(0), found.data(), bytes), 0);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), memory_.begin())) << bytes;
    for (uint8_t& byte : found) byte = static_cast<uint8_t>(byte + 1);
    ASSERT_EQ(memory->Write(found.data(), At(0), bytes), 0);
    std::vector<uint8_t> again(bytes);
    ASSERT_EQ(memory->Read(At(0), again.data(), bytes), 0);
    EXPECT_EQ(again, found);
    std::copy(found.begin(), found.end(), memory_.begin());
  }
}

TEST_F(ProcessMemoryTest, IsOneForAllWhoseClaimHasTheSameMark) {
  const auto reads = ProcessMemory::Of(Claim(), Access::kRead);
  ASSERT_NE(reads, nullptr);
  EXPECT_NE(ProcessMemory::Of(Claim(), Access::kReadAndWrite), reads) << "which may have a file, for as long as there are windows";
  auto other = Claim();
  const uint8_t nothing_like_it[16] = {};
  other.cookie = nothing_like_it;
  EXPECT_EQ(ProcessMemory::Of(other, Access::kRead), reads) << "proven already";
}

TEST_F(ProcessMemoryTest, AClaimThatIsWrongProvesNothing) {
  const uint8_t nothing_like_it[16] = {};
  auto wrong_cookie = Claim(), no_mark = Claim(), wrong_mark = Claim(), nothing_there = Claim(), nobody = Claim();
  wrong_cookie.cookie = nothing_like_it;
  no_mark.mark = 0;
  wrong_mark.mark = AddressSpaceMark();  // which a child has not
  nothing_there.cookie_address = 64;
  nobody.pid = 0;
  for (const auto& claim : {wrong_cookie, no_mark, wrong_mark, nothing_there, nobody}) {
    EXPECT_EQ(ProcessMemory::Of(claim, Access::kRead), nullptr);
  }
  ASSERT_NE(ProcessMemory::Of(Claim(), Access::kRead), nullptr);
}

TEST_F(ProcessMemoryTest, MemoryThatMayNotBeWrittenIsOnlyRead) {
  auto* const page = static_cast<uint8_t*>(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(page, MAP_FAILED);
  End();
  SetUp();  // a child that has the page
  auto claim = Claim();
  const uint8_t zeros[16] = {};
  claim.cookie_address = reinterpret_cast<uintptr_t>(page);
  claim.cookie = zeros;
  EXPECT_EQ(ProcessMemory::Of(claim, Access::kReadAndWrite), nullptr);
  EXPECT_NE(ProcessMemory::Of(claim, Access::kRead), nullptr);
  munmap(page, 4096);
}

TEST_F(ProcessMemoryTest, OfAProcessThatEndedIsGone) {
  const auto memory = ProcessMemory::Of(Claim(), Access::kReadAndWrite);
  ASSERT_NE(memory, nullptr);
  uint8_t bytes[8192];
  ASSERT_EQ(memory->Read(At(0), bytes, 8), 0);
  End();
  EXPECT_EQ(memory->Read(At(0), bytes, 8), ESRCH) << "through the file";
  EXPECT_EQ(memory->Read(At(0), bytes, sizeof bytes), ESRCH);
  const iovec here{bytes, sizeof bytes};
  EXPECT_EQ(memory->ReadSome({&here, 1}, At(0), sizeof bytes), 0u);
}

}  // namespace
}  // namespace weft::mpi::host
