#include "base/memory_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <utility>

namespace weft {
namespace {

constexpr uint64_t kValue = 0x1234'5678'9abc'def0;
constexpr size_t kPage = 4096;

// Another process, a copy of this one as it was when it began. It does what Serve() says for each byte that it is sent.
class MemoryFileTest : public testing::Test {
 protected:
  enum class Order : char { kExecute = 'x', kEnd = 'e' };

  void SetUp() override {
    memory_ = static_cast<char*>(mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory_, MAP_FAILED);
    munmap(memory_ + 2 * kPage, kPage);
    std::memcpy(memory_, &kValue, sizeof kValue);
    ASSERT_EQ(pipe2(orders_, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(answers_, O_CLOEXEC), 0);
    child_ = fork();
    if (child_ == 0) Serve();
  }

  void TearDown() override {
    if (child_ > 0) End();
    for (const int end : {orders_[0], orders_[1], answers_[0], answers_[1]}) close(end);
    munmap(memory_, 2 * kPage);
  }

  [[noreturn]] void Serve() {
    close(orders_[1]);
    close(answers_[0]);
    for (char order = 0; read(orders_[0], &order, 1) == 1;) {
      if (order != static_cast<char>(Order::kExecute)) break;
      execl("/bin/sleep", "sleep", "60", nullptr);  // which closes our end of answers_
    }
    _exit(0);
  }

  void Give(Order order) { ASSERT_EQ(write(orders_[1], &order, 1), 1); }
  void AwaitEndOfAnswers() {
    close(answers_[1]);
    answers_[1] = -1;
    char byte;
    EXPECT_EQ(read(answers_[0], &byte, 1), 0);
  }
  void End() {
    Give(Order::kEnd);
    kill(child_, SIGKILL);
    waitpid(std::exchange(child_, 0), nullptr, 0);
  }

  uint64_t At(size_t position) const { return reinterpret_cast<uintptr_t>(memory_) + position; }
  std::shared_ptr<MemoryFile> OpenIt() { return MemoryFile::Open(child_, At(0), kValue); }

  char* memory_ = nullptr;
  int orders_[2] = {-1, -1}, answers_[2] = {-1, -1};
  pid_t child_ = 0;
};

TEST_F(MemoryFileTest, WhatIsWrittenIsThere) {
  const auto file = OpenIt();
  ASSERT_NE(file, nullptr);
  char got[MemoryFile::kMostBytes] = {};
  EXPECT_EQ(file->Write("hello", At(kPage - 2), 5), 0) << "across two pages";
  EXPECT_EQ(file->Read(got, At(kPage - 3), 7), 0);
  EXPECT_EQ(std::memcmp(got, "\0hello\0", 7), 0);
  EXPECT_EQ(std::memcmp(memory_ + kPage - 2, "\0\0\0\0\0", 5), 0) << "here it is not";
  std::memset(got, 'x', sizeof got);
  EXPECT_EQ(file->Write(got, At(9), sizeof got), 0);
  std::memset(got, 0, sizeof got);
  EXPECT_EQ(file->Read(got, At(9), sizeof got), 0);
  EXPECT_EQ(got[0], 'x');
  EXPECT_EQ(got[sizeof got - 1], 'x');
}

TEST_F(MemoryFileTest, WhatIsNoMemoryIsNotTouched) {
  const auto file = OpenIt();
  ASSERT_NE(file, nullptr);
  char got[8] = {};
  EXPECT_EQ(file->Write("hello", At(2 * kPage), 5), EFAULT);
  EXPECT_EQ(file->Read(got, At(2 * kPage), 5), EFAULT);
  EXPECT_EQ(file->Read(got, At(2 * kPage - 2), 5), EFAULT) << "some of it";
  EXPECT_EQ(file->Read(got, ~uint64_t{0} - 2, 5), EFAULT);
  EXPECT_EQ(file->Read(got, 0, 5), EFAULT);
}

TEST_F(MemoryFileTest, OneFileIsForAll) {
  auto first = OpenIt(), second = OpenIt();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first, second);
  const int number = dup(0);  // the next that is free
  close(number);
  first.reset();
  EXPECT_EQ(second->Write("hello", At(16), 5), 0);
  second.reset();
  const int again = dup(0);
  close(again);
  EXPECT_LT(again, number) << "the last one closes it";
}

TEST_F(MemoryFileTest, AnotherProcessIsNotOpened) {
  EXPECT_EQ(MemoryFile::Open(child_, At(0), kValue + 1), nullptr);
  EXPECT_EQ(MemoryFile::Open(child_, At(2 * kPage), kValue), nullptr);
  EXPECT_EQ(MemoryFile::Open(0x7fff'fff0, At(0), kValue), nullptr);
}

TEST_F(MemoryFileTest, AProcessThatEndedIsGone) {
  const auto file = OpenIt();
  ASSERT_NE(file, nullptr);
  End();
  char got[8];
  EXPECT_EQ(file->Write("hello", At(16), 5), ESRCH);
  EXPECT_EQ(file->Read(got, At(16), 5), ESRCH);
}

TEST_F(MemoryFileTest, WhatAProcessExecutesIsNotIt) {
  const auto file = OpenIt();
  ASSERT_NE(file, nullptr);
  Give(Order::kExecute);
  AwaitEndOfAnswers();
  EXPECT_EQ(file->Write("hello", At(16), 5), ESRCH);
}

TEST_F(MemoryFileTest, WithoutADescriptorThereIsNone) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  for (const rlim_t limit : {rlim_t{0}, rlim_t{32}}) {  // no descriptor, none to spare
    const rlimit few{limit, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    int taken[8];
    for (int& fd : taken) fd = dup(0);
    EXPECT_EQ(OpenIt(), nullptr);
    for (const int fd : taken) close(fd);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  }
  EXPECT_NE(OpenIt(), nullptr);
}

}  // namespace
}  // namespace weft
