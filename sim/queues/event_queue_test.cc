#include "sim/queues/event_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

namespace weft::sim {
namespace {

bool Readable(const EventQueue<int>& queue) {
  pollfd ready{queue.fd(), POLLIN, 0};
  return poll(&ready, 1, 0) == 1;
}

TEST(EventQueueTest, IsReadableExactlyWhileEventsWait) {
  EventQueue<int> queue;
  EXPECT_FALSE(Readable(queue));
  queue.Push(1);
  queue.Push(2);
  EXPECT_TRUE(Readable(queue));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_TRUE(Readable(queue));
  EXPECT_EQ(queue.Remove([](int event) { return event == 2; }), 1u);
  EXPECT_FALSE(Readable(queue));
  EXPECT_EQ(queue.TryPop(), std::nullopt);
  queue.Push(3);
  EXPECT_EQ(queue.TryPop(), 3);
  EXPECT_FALSE(Readable(queue));
}

TEST(EventQueueTest, NonBlockingPopFindsNothing) {
  EventQueue<int> queue;
  ASSERT_EQ(fcntl(queue.fd(), F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(queue.Pop(), std::nullopt);
  EXPECT_EQ(errno, EAGAIN);
  queue.Push(7);
  EXPECT_EQ(queue.Pop(), 7);
}

TEST(EventQueueTest, ASignalEndsTheWait) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  EventQueue<int> queue;
  std::atomic<bool> ended = false;
  std::thread waiter([&] {
    EXPECT_EQ(queue.Pop(), std::nullopt);
    EXPECT_EQ(errno, EINTR);
    ended = true;
  });
  while (!ended) pthread_kill(waiter.native_handle(), SIGUSR1), std::this_thread::yield();
  waiter.join();
}

// rdma_destroy_id while another thread waits for events of the same channel: what one takes the other must not wait for.
TEST(EventQueueTest, RemovingWhileOthersPopNeitherLosesNorHangs) {
  constexpr int kRounds = 100'000;
  constexpr int kEnd = -1;
  EventQueue<int> queue;
  std::atomic<int> popped = 0;
  std::vector<std::thread> poppers;
  for (int i = 0; i < 2; ++i) {
    poppers.emplace_back([&] {
      while (queue.Pop() != kEnd) ++popped;
    });
  }
  int removed = 0;
  for (int i = 0; i < kRounds; ++i) {
    queue.Push(i);
    removed += static_cast<int>(queue.Remove([](int) { return true; }));
  }
  for (size_t i = 0; i < poppers.size(); ++i) queue.Push(kEnd);
  for (std::thread& popper : poppers) popper.join();
  EXPECT_EQ(popped + removed, kRounds);
  EXPECT_FALSE(Readable(queue));
}

// A Push and the event's token are two steps, also for a program that made the descriptor non-blocking.
TEST(EventQueueTest, EachEventIsCountedOnceWhereverItIsTaken) {
  constexpr int kRounds = 100'000;
  for (const int flags : {0, O_NONBLOCK}) {
    EventQueue<int> queue;
    ASSERT_EQ(fcntl(queue.fd(), F_SETFL, flags), 0);
    std::thread pusher([&] {
      for (int i = 0; i < kRounds; ++i) queue.Push(i);
    });
    for (int expected = 0; expected < kRounds;) {
      if (const auto event = queue.TryPop()) {
        ASSERT_EQ(*event, expected++);
      }
    }
    pusher.join();
    EXPECT_FALSE(Readable(queue));
  }
}

}  // namespace
}  // namespace weft::sim
