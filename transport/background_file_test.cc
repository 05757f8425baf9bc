#include "transport/background_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <string>

#include "base/log.h"

namespace weft::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Pipe {
  Pipe() { EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0); }
  std::string Read(size_t length) {
    std::string all;
    pollfd ready{ends[0], POLLIN, 0};
    while (all.size() < length && poll(&ready, 1, 10'000) > 0) {
      char buffer[65536];
      const ssize_t count = read(ends[0], buffer, sizeof buffer);
      if (count <= 0) break;
      all.append(buffer, static_cast<size_t>(count));
    }
    return all;
  }
  int ends[2];
};

std::vector<uint8_t> Bytes(size_t length) {
  std::vector<uint8_t> bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  return bytes;
}

TEST(BackgroundFileTest, AReaderThatDoesNotReadHoldsNobodyUpAndGetsAll) {
  Pipe pipe;
  BackgroundFile file(pipe.ends[1], "x");
  std::string expected;
  for (int i = 0; i < 20; ++i) {
    auto bytes = Bytes(100'000);
    expected.append(bytes.begin(), bytes.end());
    file.Append(bytes);
    EXPECT_TRUE(bytes.empty());
  }
  EXPECT_FALSE(file.Sync(milliseconds(1)));
  EXPECT_TRUE(pipe.Read(expected.size()) == expected);
  EXPECT_TRUE(file.Sync(seconds(10)));
}

TEST(BackgroundFileTest, WhatIsTooMuchIsLeftOutAsAWhole) {
  SilenceWarnings(true);
  Pipe pipe;
  constexpr size_t kPiece = 100'000;
  BackgroundFile file(pipe.ends[1], "x", 6 * kPiece);
  for (int i = 0; i < 20; ++i) {
    auto bytes = Bytes(kPiece);
    file.Append(bytes);
  }
  const size_t all = pipe.Read(6 * kPiece).size();
  EXPECT_EQ(all, 6 * kPiece);
  EXPECT_TRUE(file.Sync(seconds(10)));
  auto more = Bytes(5);
  file.Append(more);
  EXPECT_EQ(pipe.Read(5).size(), 5u);
  SilenceWarnings(false);
}

TEST(BackgroundFileTest, AReaderThatLeavesIsAnErrorAndNoSignal) {
  SilenceWarnings(true);
  Pipe pipe;
  close(pipe.ends[0]);
  BackgroundFile file(pipe.ends[1], "x");
  auto bytes = Bytes(5);
  file.Append(bytes);
  EXPECT_TRUE(file.Sync(seconds(10)));  // there is nothing to wait for
  SilenceWarnings(false);
}

TEST(BackgroundFileTest, GoesAlthoughNobodyReads) {
  Pipe pipe;
  {
    BackgroundFile file(pipe.ends[1], "x");
    auto bytes = Bytes(1 << 20);
    file.Append(bytes);
  }
  const std::string all = pipe.Read(1 << 20);  // up to its end
  EXPECT_LT(all.size(), size_t{1} << 20);
}

}  // namespace
}  // namespace weft::transport
