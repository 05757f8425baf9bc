#include "mpi_hybrid/p2p/tcp/cork.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace weft::mpi {
namespace {

constexpr int kPatienceMs = 20000;

class CorkTest : public ::testing::Test {
 protected:
  CorkTest() {
    int both[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both), 0);
    near_ = Socket(both[0]);
    far_ = Socket(both[1]);
  }
  static iovec Piece(const std::string& text) { return {const_cast<char*>(text.data()), text.size()}; }
  static bool Hold(Cork& cork, const std::string& text) {
    const iovec piece = Piece(text);
    return cork.Hold({&piece, 1}, text.size());
  }
  static ssize_t Write(Cork& cork, const std::string& text) {
    const iovec piece = Piece(text);
    return cork.Write({&piece, 1});
  }
  // Up to `bytes` of what arrives; fewer when nothing does for long.
  std::string Arrives(size_t bytes) {
    std::string all;
    while (all.size() < bytes) {
      pollfd readable = {far_.get(), POLLIN, 0};
      if (poll(&readable, 1, kPatienceMs) != 1) break;
      std::string some(bytes - all.size(), 0);
      const ssize_t got = recv(far_.get(), some.data(), some.size(), 0);
      if (got <= 0) break;
      all.append(some, 0, static_cast<size_t>(got));
    }
    return all;
  }
  // How much the socket takes while nobody reads.
  size_t Fill() {
    const std::string some(1000, 'f');
    size_t bytes = 0;
    for (;;) {
      const iovec piece = Piece(some);
      const ssize_t written = near_.Write({&piece, 1});
      if (written < 0) return bytes;
      bytes += static_cast<size_t>(written);
    }
  }

  Socket near_, far_;
  Corks corks_;
};

TEST_F(CorkTest, WhatIsHeldLeavesByItself) {
  Cork cork(corks_, near_);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(Hold(cork, "one "));
    EXPECT_TRUE(Hold(cork, "two "));
    EXPECT_EQ(Arrives(8), "one two ");
    std::this_thread::sleep_for(Corks::kTick * 60 * round);  // also when the thread has long had nothing to do
  }
}

TEST_F(CorkTest, WhatIsHeldGoesBeforeWhatIsWritten) {
  Cork cork(corks_, near_);
  EXPECT_TRUE(cork.empty());
  EXPECT_TRUE(Hold(cork, "one "));
  EXPECT_EQ(Write(cork, "two "), 4);
  EXPECT_TRUE(cork.empty());
  EXPECT_EQ(Arrives(8), "one two ");
  EXPECT_TRUE(Hold(cork, "three"));
  EXPECT_EQ(cork.Write({}), 0);
  EXPECT_TRUE(cork.empty());
  EXPECT_EQ(Arrives(5), "three");
}

TEST_F(CorkTest, HoldsNoPartOfAFrameAndNoMoreThanItHasRoomFor) {
  Cork cork(corks_, near_);
  const std::string part = "part";
  const iovec piece = Piece(part);
  EXPECT_FALSE(cork.Hold({&piece, 1}, 5));
  EXPECT_TRUE(cork.empty());
  EXPECT_FALSE(Hold(cork, std::string(Cork::kRoom + 1, 'a')));
  EXPECT_TRUE(Hold(cork, std::string(Cork::kRoom, 'a')));
}

TEST_F(CorkTest, WhatAFullSocketDoesNotTakeLeavesWhenItDoes) {
  Cork cork(corks_, near_);
  const size_t filling = Fill();
  EXPECT_TRUE(Hold(cork, "one "));
  EXPECT_EQ(Write(cork, "two "), -EAGAIN);
  EXPECT_FALSE(cork.empty());
  std::this_thread::sleep_for(Corks::kTick * 20);
  EXPECT_FALSE(cork.empty());
  EXPECT_EQ(Arrives(filling + 4).substr(filling), "one ");
}

TEST_F(CorkTest, IsDestroyedWhileItHolds) {
  for (int i = 0; i < 300; ++i) {
    Cork cork(corks_, near_);
    EXPECT_TRUE(Hold(cork, "x"));
    if (i % 3 == 0) std::this_thread::sleep_for(Corks::kTick);
  }
}

TEST_F(CorkTest, PeerIsGone) {
  Cork cork(corks_, near_);
  far_.Close();
  EXPECT_TRUE(Hold(cork, "one "));
  std::this_thread::sleep_for(Corks::kTick * 20);
  EXPECT_EQ(Write(cork, "two "), -EPIPE);
}

TEST_F(CorkTest, OrderIsKeptWhoeverLetsGo) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Cork cork(corks_, near_);
  constexpr uint32_t kFrames = 20000;
  std::thread reader([&] {
    for (uint32_t i = 0; i < kFrames; ++i) {
      const std::string frame = Arrives(sizeof i);
      uint32_t number = 0;
      ASSERT_EQ(frame.size(), sizeof number);
      std::memcpy(&number, frame.data(), sizeof number);
      ASSERT_EQ(number, i);
    }
  });
  for (uint32_t i = 0; i < kFrames; ++i) {
    const std::string frame(reinterpret_cast<const char*>(&i), sizeof i);
    if (random() % 4 != 0 && Hold(cork, frame)) {
      if (random() % 200 == 0) std::this_thread::sleep_for(Corks::kTick * (random() % 4));
      continue;
    }
    for (size_t written = 0; written < sizeof i;) {
      const ssize_t more = Write(cork, frame.substr(written));
      if (more > 0) written += static_cast<size_t>(more);
      if (more == -EAGAIN) std::this_thread::yield();
    }
  }
  reader.join();
}

}  // namespace
}  // namespace weft::mpi
