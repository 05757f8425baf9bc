#include "mpi_hybrid/rma/noted_locks.h"

#include <gtest/gtest.h>

#include <thread>

namespace weft::mpi::rma {
namespace {

TEST(NotedLocksTest, AreInTheOrderOfTheCalls) {
  NotedLocks locks;
  NotedLock first, second, third;
  for (NotedLock* lock : {&first, &second, &third}) {
    lock->thread = pthread_self();
    locks.Add(*lock);
  }
  EXPECT_EQ(locks.FirstOf(pthread_self()), &first);
  locks.Remove(second);
  EXPECT_FALSE(second.listed());
  locks.Remove(first);
  EXPECT_EQ(locks.FirstOf(pthread_self()), &third);
  locks.Add(first);
  EXPECT_EQ(locks.FirstOf(pthread_self()), &third);
  locks.Remove(third);
  locks.Remove(first);
  EXPECT_EQ(locks.FirstOf(pthread_self()), nullptr);
  EXPECT_TRUE(locks.empty());
}

TEST(NotedLocksTest, RemovingOneThatIsNotListedChangesNothing) {
  NotedLocks locks;
  NotedLock one, other;
  one.thread = pthread_self();
  locks.Add(one);
  locks.Remove(other);
  EXPECT_EQ(locks.FirstOf(pthread_self()), &one);
  locks.Remove(one);
  locks.Remove(one);
  EXPECT_TRUE(locks.empty());
}

TEST(NotedLocksTest, OfOneThreadAreNothingToAnother) {
  NotedLocks locks;
  NotedLock mine, its;
  mine.thread = pthread_self();
  std::thread([&] {
    its.thread = pthread_self();
    locks.Add(its);
    EXPECT_EQ(locks.FirstOf(pthread_self()), &its);
  }).join();
  locks.Add(mine);
  EXPECT_EQ(locks.FirstOf(pthread_self()), &mine);
  locks.Remove(mine);
  EXPECT_EQ(locks.FirstOf(pthread_self()), nullptr);
}

}  // namespace
}  // namespace weft::mpi::rma
