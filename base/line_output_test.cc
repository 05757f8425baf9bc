#include "base/line_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

namespace weft {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Ends {
  int read, write;
};
Ends Pipe() {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  return {ends[0], ends[1]};
}

std::string ReadUntil(int fd, const std::string& mark) {
  std::string all;
  char buffer[65536];
  pollfd ready{fd, POLLIN, 0};
  while (all.find(mark) == all.npos && poll(&ready, 1, 10'000) > 0) {
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count <= 0) break;
    all.append(buffer, static_cast<size_t>(count));
  }
  return all;
}

size_t Lines(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

std::string Numbered(int number, size_t length = 100) {
  std::string line = std::to_string(number) + " ";
  line.resize(length - 1, '.');
  return line + "\n";
}

TEST(LineOutputTest, APipeThatNobodyReadsHoldsNobodyUpAndLosesNothingThatFits) {
  const Ends pipe = Pipe();
  LineOutput output(pipe.write);
  constexpr int kCount = 2500;  // 250,000 bytes: more than the pipe takes, less than is kept
  for (int i = 0; i < kCount; ++i) output.Write(Numbered(i));
  EXPECT_FALSE(output.Drain(milliseconds(1)));
  const std::string all = ReadUntil(pipe.read, Numbered(kCount - 1));
  std::string expected;
  for (int i = 0; i < kCount; ++i) expected += Numbered(i);
  EXPECT_TRUE(all == expected) << all.size() << " of " << expected.size();
  EXPECT_TRUE(output.Drain(seconds(10)));
  EXPECT_EQ(fcntl(pipe.write, F_GETFL) & O_NONBLOCK, 0);
}

TEST(LineOutputTest, WhatIsTooMuchIsCounted) {
  const Ends pipe = Pipe();
  LineOutput output(pipe.write);
  constexpr int kCount = 10'000;
  for (int i = 0; i < kCount; ++i) output.Write(Numbered(i));
  const std::string mark = " lines were dropped here";
  const std::string all = ReadUntil(pipe.read, mark);
  const size_t at = all.find(mark);
  ASSERT_NE(at, all.npos);
  const size_t number = all.rfind(' ', at - 1) + 1;
  EXPECT_EQ(std::stoul(all.substr(number)) + Lines(all.substr(0, at)), static_cast<size_t>(kCount));
  EXPECT_TRUE(output.Drain(seconds(10)));
  output.Write("again\n");
  EXPECT_NE(ReadUntil(pipe.read, "again\n").find("again\n"), std::string::npos);
}

TEST(LineOutputTest, ManyThreadsLinesStayWhole) {
  const Ends pipe = Pipe();
  LineOutput output(pipe.write);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) output.Write(Numbered(i));
    });
  }
  std::string all;
  while (Lines(all) < 2000) {
    const std::string more = ReadUntil(pipe.read, "\n");
    ASSERT_FALSE(more.empty());
    all += more;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(all.size(), 2000u * 100);
  for (size_t i = 99; i < all.size(); i += 100) ASSERT_EQ(all[i], '\n') << i;
}

TEST(LineOutputTest, APipeWithoutAReaderRaisesNoSignal) {
  const Ends pipe = Pipe();
  close(pipe.read);
  LineOutput output(pipe.write);
  output.Write("nobody\n");  // SIGPIPE would end the test
  sigset_t waiting;
  sigpending(&waiting);
  EXPECT_EQ(sigismember(&waiting, SIGPIPE), 0);
}

TEST(LineOutputTest, LongLinesAreCut) {
  const Ends pipe = Pipe();
  LineOutput output(pipe.write);
  output.Write(std::string(3 * LineOutput::kLongest, 'x') + "\n");
  const std::string all = ReadUntil(pipe.read, "\n");
  EXPECT_EQ(all.size(), LineOutput::kLongest);
  EXPECT_TRUE(all.ends_with("x ...\n"));
}

TEST(LineOutputTest, ASocketFromTheStartIsWrittenAndNotWaitedFor) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  LineOutput output(ends[0]);
  constexpr int kCount = 2500;
  for (int i = 0; i < kCount; ++i) output.Write(Numbered(i));
  const std::string all = ReadUntil(ends[1], Numbered(kCount - 1));
  EXPECT_EQ(Lines(all), static_cast<size_t>(kCount));
}

// A program that closes its stderr gets the number back with its next descriptor.
TEST(LineOutputTest, WhatTheProgramOpensInItsPlaceIsLeftAlone) {
  const Ends pipe = Pipe();
  LineOutput output(pipe.write);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ASSERT_GE(dup2(ends[0], pipe.write), 0);
  output.Write("into a connection\n");
  pollfd ready{ends[1], POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  const int event = eventfd(0, EFD_NONBLOCK);
  ASSERT_GE(dup2(event, pipe.write), 0);
  output.Write("into an event descriptor\n");
  uint64_t value;
  EXPECT_EQ(read(event, &value, sizeof value), -1);
  const int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
  LineOutput closed(987);
  ASSERT_EQ(dup2(file, 987), 987);
  closed.Write("into a file\n");
  EXPECT_EQ(lseek(file, 0, SEEK_END), 0);
  EXPECT_EQ(fcntl(987, F_SETFL, O_APPEND), 0);
  close(987);
  closed.Write("into nothing\n");
}

TEST(LineOutputTest, ErrnoStays) {
  LineOutput output(988);
  errno = EBUSY;
  output.Write("x\n");
  EXPECT_EQ(errno, EBUSY);
}

// What a library's warnings do at the end of a process whose stderr nobody reads: it ends.
TEST(LineOutputTest, AProcessEndsAlthoughNobodyReads) {
  const Ends pipe = Pipe();
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe.write, STDERR_FILENO);
    for (int i = 0; i < 2000; ++i) LineOutput::Stderr().Write(Numbered(i));
    LineOutput::Stderr().Drain(milliseconds(100));
    _exit(3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

}  // namespace
}  // namespace weft
