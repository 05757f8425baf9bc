#include "mpi_hybrid/core/lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "mpi_hybrid/core/counters.h"

namespace weft::mpi {
namespace {

// The main thread has the lock from here on, between the tests, too.
class LibraryLockTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { LibraryLock::EnableThreads(); }

  static void AwaitAnother() {
    while (!LibraryLock::IsAwaited()) std::this_thread::yield();
  }
};

TEST_F(LibraryLockTest, AThreadThatWaitsHasHadTheLockWhenItWasHandedOver) {
  for (int round = 0; round < 1000; ++round) {
    std::atomic<bool> had{false};
    std::thread other([&] {
      const LockGuard guard;
      had = true;
    });
    AwaitAnother();
    EXPECT_FALSE(had);
    LibraryLock::HandOver();
    ASSERT_TRUE(had);
    EXPECT_FALSE(LibraryLock::IsAwaited());
    other.join();
  }
}

TEST_F(LibraryLockTest, WithoutAThreadThatWaitsNothingIsHandedOver) {
  const uint64_t before = g_counters.lock_handovers;
  LibraryLock::HandOver();
  EXPECT_EQ(g_counters.lock_handovers, before);
}

TEST_F(LibraryLockTest, AFunctionOfTheProgramKeepsTheLockOfItsCaller) {
  std::atomic<bool> had{false};
  std::thread other([&] {
    const LockGuard guard;
    had = true;
  });
  AwaitAnother();
  {
    const LockGuard of_the_function;
    LibraryLock::HandOver();
    EXPECT_FALSE(had);
  }
  LibraryLock::HandOver();
  EXPECT_TRUE(had);
  other.join();
}

TEST_F(LibraryLockTest, TwoThreadsWithLongWorkTakeTurns) {
  int turns = 0, changes = 0, last = 0;  // guarded by the lock
  const auto work = [&](int self) {
    const LockGuard guard;
    while (turns < 1000) {
      ++turns;
      if (last != self) ++changes;
      last = self;
      while (turns < 1000 && !LibraryLock::IsAwaited()) std::this_thread::yield();
      LibraryLock::HandOver();
    }
  };
  std::thread first(work, 1), second(work, 2);
  LibraryLock::Release();
  first.join();
  second.join();
  LibraryLock::Acquire();
  EXPECT_GE(changes, 990);
}

}  // namespace
}  // namespace weft::mpi
