#include "base/mutex.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace weft {
namespace {

TEST(MutexTest, OneAtATimeHasIt) {
  Mutex mutex;
  ASSERT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(MutexTest, WhoeverWaitsGetsIt) {
  constexpr int kThreads = 8, kTimes = 20000;
  Mutex mutex;
  int count = 0;  // without the mutex some of them would be lost
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kTimes; ++j) {
        if (j % 3 != 0 || !mutex.try_lock()) mutex.lock();
        std::lock_guard lock(mutex, std::adopt_lock);
        if (++count % 1000 == 0) std::this_thread::yield();  // others come to wait
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, kThreads * kTimes);
}

}  // namespace
}  // namespace weft
