#include "mpi_hybrid/rma/host_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace weft::mpi::rma {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Each test has a memory of its own, which outlives it: a mapping knows no owner.
HostMemory& NewMemory() {
  static auto* const all = new std::vector<std::unique_ptr<HostMemory>>;
  return *all->emplace_back(std::make_unique<HostMemory>());
}

// What `body` returns in a forked child.
int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

long PagesOf(int fd) {
  struct stat state {};
  EXPECT_EQ(fstat(fd, &state), 0);
  return state.st_blocks / 8;
}

TEST(HostMemoryTest, GivesAlignedMemoryOfAnySizeThatIsNobodyElses) {
  HostMemory& memory = NewMemory();
  struct One {
    uint8_t* at;
    size_t bytes;
  };
  std::vector<One> all;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{65}, size_t{5000}, kMiB - 1, kMiB, 3 * kMiB + 1, 9 * kMiB}) {
    for (size_t alignment = 64; alignment <= 4 * kMiB; alignment *= 8) {
      auto* const at = static_cast<uint8_t*>(memory.Take(bytes, alignment));
      ASSERT_NE(at, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % alignment, 0u);
      if (bytes > 0) std::memset(at, static_cast<int>(all.size()), bytes);
      all.push_back({at, bytes});
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    for (const size_t byte : {size_t{0}, all[i].bytes / 2, all[i].bytes - 1}) {
      if (all[i].bytes == 0) continue;
      EXPECT_EQ(all[i].at[byte], i);
    }
    EXPECT_TRUE(memory.Give(all[i].at));
  }
}

TEST(HostMemoryTest, AnotherProcessMapsTheSameMemory) {
  HostMemory& memory = NewMemory();
  for (const size_t bytes : {size_t{1000}, 2 * kMiB}) {
    (void)memory.Take(100, 64);
    auto* const at = static_cast<uint8_t*>(memory.Take(bytes, 64));
    ASSERT_NE(at, nullptr);
    at[bytes - 1] = 5;
    HostMemory::Use use;
    ASSERT_TRUE(memory.Find(at + 8, bytes - 8, &use));
    EXPECT_EQ(InChild([&] {
                const auto mapped = MappedSpan::Find(getppid(), use.span());
                if (mapped == nullptr || use.offset() + bytes - 8 > mapped->size()) return 1;
                uint8_t* const its = mapped->data() + use.offset();
                if (its == at + 8 || its[bytes - 9] != 5) return 2;
                its[0] = 7;
                return 0;
              }),
              0);
    EXPECT_EQ(at[8], 7);
  }
}

TEST(HostMemoryTest, ASpanIsMappedOnceForAllAndUnmappedWithTheLast) {
  HostMemory& memory = NewMemory();
  void* const one = memory.Take(64, 64);
  void* const other = memory.Take(64, 64);
  HostMemory::Use first, second;
  ASSERT_TRUE(memory.Find(one, 64, &first));
  ASSERT_TRUE(memory.Find(other, 64, &second));
  auto mapped = MappedSpan::Find(getpid(), first.span());
  ASSERT_NE(mapped, nullptr);
  EXPECT_EQ(MappedSpan::Find(getpid(), second.span()), mapped);
  const std::weak_ptr<MappedSpan> last = mapped;
  mapped.reset();
  EXPECT_TRUE(last.expired());
  EXPECT_NE(MappedSpan::Find(getpid(), first.span()), nullptr);
}

TEST(HostMemoryTest, WhatIsNotAsItSaysIsNotMapped) {
  HostMemory& memory = NewMemory();
  void* const at = memory.Take(2 * kMiB, 64);
  HostMemory::Use use;
  ASSERT_TRUE(memory.Find(at, kMiB, &use));
  const auto maps = [&](auto change) {
    HostMemory::Span span = use.span();
    change(span);
    return MappedSpan::Find(getpid(), span) != nullptr;
  };
  EXPECT_TRUE(maps([](HostMemory::Span&) {}));
  EXPECT_FALSE(maps([](HostMemory::Span& span) { span.cookie[3] ^= 1; })) << "a process that has the number now";
  EXPECT_FALSE(maps([](HostMemory::Span& span) { span.fd = 0; })) << "no memory file";
  EXPECT_FALSE(maps([](HostMemory::Span& span) { span.fd = -1; }));
  EXPECT_FALSE(maps([](HostMemory::Span& span) { span.at += 1; }));
  EXPECT_FALSE(maps([](HostMemory::Span& span) { span.bytes = 0; }));
  EXPECT_FALSE(maps([](HostMemory::Span& span) { span.at = uint64_t{1} << 56; }));
  EXPECT_FALSE(maps([](HostMemory::Span& span) { span.at = ~uint64_t{4095}; }));
  EXPECT_FALSE(maps([](HostMemory::Span& span) { span.bytes = ~uint64_t{0}; }));
}

TEST(HostMemoryTest, FindsWhatIsInsideOfOneAllocation) {
  HostMemory& memory = NewMemory();
  auto* const at = static_cast<uint8_t*>(memory.Take(128, 64));
  auto* const next = static_cast<uint8_t*>(memory.Take(128, 64));
  const auto finds = [&](const void* from, size_t bytes) {
    HostMemory::Use use;
    return memory.Find(from, bytes, &use);
  };
  EXPECT_TRUE(finds(at, 128));
  EXPECT_TRUE(finds(at + 127, 1));
  EXPECT_FALSE(finds(at, 0));
  EXPECT_FALSE(finds(std::min(at, next), 129)) << "of two";
  EXPECT_FALSE(finds(std::min(at, next) - 1, 2));
  EXPECT_FALSE(finds(std::max(at, next) + 128, 1));
  int on_the_stack = 0;
  EXPECT_FALSE(finds(&on_the_stack, sizeof on_the_stack));
  EXPECT_FALSE(memory.Give(&on_the_stack));
  EXPECT_FALSE(memory.Give(nullptr));
}

TEST(HostMemoryTest, MemoryThatIsGivenBackGoesToTheSystemWhoeverHasItMapped) {
  HostMemory& memory = NewMemory();
  auto* const at = static_cast<uint8_t*>(memory.Take(8 * kMiB, 64));
  HostMemory::Use use;
  ASSERT_TRUE(memory.Find(at, 8 * kMiB, &use));
  const int fd = use.span().fd;
  const auto mapped = MappedSpan::Find(getpid(), use.span());
  ASSERT_NE(mapped, nullptr);
  std::memset(at, 1, 8 * kMiB);
  EXPECT_GE(PagesOf(fd), 2048);
  use.Reset();
  EXPECT_TRUE(memory.Give(at));
  EXPECT_LE(PagesOf(fd), 1);
  EXPECT_EQ(mapped->data()[5 * kMiB], 0);
}

TEST(HostMemoryTest, NoOffsetIsGivenOutTwice) {
  HostMemory& memory = NewMemory();
  std::vector<uint64_t> offsets;
  for (int i = 0; i < 10; ++i) {
    void* const at = memory.Take(2 * kMiB, 64);
    HostMemory::Use use;
    ASSERT_TRUE(memory.Find(at, 1, &use));
    EXPECT_EQ(std::count(offsets.begin(), offsets.end(), use.span().at), 0);
    offsets.push_back(use.span().at);
    EXPECT_TRUE(memory.Give(at));
  }
}

TEST(HostMemoryTest, WhatIsInUseStaysThoughItIsGivenBack) {
  HostMemory& memory = NewMemory();
  for (const size_t bytes : {size_t{4096}, 2 * kMiB}) {
    auto* const at = static_cast<uint8_t*>(memory.Take(bytes, 64));
    HostMemory::Use use;
    ASSERT_TRUE(memory.Find(at, bytes, &use));
    at[0] = 9;
    EXPECT_TRUE(memory.Give(at));
    EXPECT_NE(memory.Take(bytes, 64), at);
    EXPECT_EQ(at[0], 9);
    use.Reset();
    EXPECT_FALSE(memory.Give(at));
  }
}

TEST(HostMemoryTest, SmallOnesTakeFewMappingsAndTheirRoomIsUsedAgain) {
  HostMemory& memory = NewMemory();
  std::vector<void*> all;
  uint64_t last = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1000; ++i) all.push_back(memory.Take(4096, 64));
    HostMemory::Use use;
    ASSERT_TRUE(memory.Find(all.back(), 1, &use));
    if (round == 0) last = use.span().at;
    EXPECT_EQ(use.span().at, last) << "1,000 pages fit in one span";
    use.Reset();
    for (void* const one : all) EXPECT_TRUE(memory.Give(one));
    all.clear();
  }
}

TEST(HostMemoryTest, AForkedChildTakesNothingAndGivesNothingBack) {
  HostMemory& memory = NewMemory();
  auto* const at = static_cast<uint8_t*>(memory.Take(2 * kMiB, 64));
  at[kMiB] = 3;
  EXPECT_EQ(InChild([&] { return memory.Take(64, 64) == nullptr && memory.Give(at) && at[kMiB] == 3 ? 0 : 1; }), 0);
  EXPECT_EQ(at[kMiB], 3);
  EXPECT_TRUE(memory.Give(at));
}

TEST(HostMemoryTest, WithoutAFileOrADescriptorThereIsNone) {
  EXPECT_EQ(InChild([] {
              const rlimit short_files{kMiB, kMiB};
              HostMemory memory;
              return setrlimit(RLIMIT_FSIZE, &short_files) == 0 && memory.Take(64, 64) == nullptr ? 0 : 1;
            }),
            0);
  EXPECT_EQ(InChild([] {
              const rlimit few{3, 3};
              HostMemory memory;
              return setrlimit(RLIMIT_NOFILE, &few) == 0 && memory.Take(64, 64) == nullptr ? 0 : 1;
            }),
            0);
  EXPECT_EQ(NewMemory().Take(SIZE_MAX / 4, 64), nullptr) << "more than there is";
}

}  // namespace
}  // namespace weft::mpi::rma
