#include "sim/queues/shared_receive_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "sim/device/limits.h"

namespace weft::sim {
namespace {

struct CountedEvents final : AsyncSink {
  void OnAsyncEvent(ibv_event_type type, void*) override {
    EXPECT_EQ(type, IBV_EVENT_SRQ_LIMIT_REACHED);
    ++count;
  }
  std::atomic<int> count{0};
};

class SharedReceiveQueueTest : public ::testing::Test {
 protected:
  SharedReceiveQueueTest() : queue_(std::make_shared<Pd>(1), 7, 4, 2, events_, this) {}

  int Post(uint64_t id, int pieces = 1) {
    ibv_sge elements[2] = {{id * 1000, 10, 1}, {id * 1000 + 500, 20, 2}};
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = elements;
    wr.num_sge = pieces;
    ibv_recv_wr* bad = nullptr;
    const int error = queue_.Post(&wr, &bad);
    EXPECT_EQ(bad, error == 0 ? nullptr : &wr);
    return error;
  }
  // The id of the oldest receive; 0: none.
  uint64_t Take() {
    ibv_recv_wr wr;
    if (!queue_.Take(&wr, elements_.data())) return 0;
    EXPECT_EQ(wr.sg_list, elements_.data());
    pieces_ = wr.num_sge;
    return wr.wr_id;
  }

  std::shared_ptr<CountedEvents> events_ = std::make_shared<CountedEvents>();
  SharedReceiveQueue queue_;
  std::array<ibv_sge, kMaxSge> elements_;
  int pieces_ = 0;
};

TEST_F(SharedReceiveQueueTest, GivesOutTheOldestWithItsElements) {
  EXPECT_EQ(Take(), 0u);
  uint64_t oldest = 1;
  const auto expect_oldest = [&] {
    ASSERT_EQ(Take(), oldest);
    ASSERT_EQ(pieces_, static_cast<int>(oldest % 3));
    for (int i = 0; i < pieces_; ++i) ASSERT_EQ(elements_[static_cast<size_t>(i)].addr, oldest * 1000 + (i == 0 ? 0 : 500));
    ++oldest;
  };
  for (uint64_t id = 1; id <= 50; ++id) {
    ASSERT_EQ(Post(id, static_cast<int>(id % 3)), 0);
    if (id > 3) expect_oldest();
  }
  while (oldest <= 50) expect_oldest();
}

TEST_F(SharedReceiveQueueTest, RefusesWhatDoesNotFitAndNamesIt) {
  EXPECT_EQ(Post(1, 3), EINVAL);
  EXPECT_EQ(Post(1, -1), EINVAL);
  for (uint64_t id = 1; id <= 4; ++id) ASSERT_EQ(Post(id), 0);
  EXPECT_EQ(Post(5), ENOMEM);
  EXPECT_EQ(Take(), 1u);
  EXPECT_EQ(Post(5), 0);
  for (uint64_t id = 2; id <= 5; ++id) EXPECT_EQ(Take(), id);
  EXPECT_EQ(Take(), 0u);
}

TEST_F(SharedReceiveQueueTest, WhatStandsBeforeARefusedRequestIsPosted) {
  ibv_recv_wr wrs[3] = {};
  wrs[0] = {.wr_id = 1, .next = &wrs[1]};
  wrs[1] = {.wr_id = 2, .next = &wrs[2], .num_sge = 3};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(queue_.Post(wrs, &bad), EINVAL);
  EXPECT_EQ(bad, &wrs[1]);
  EXPECT_EQ(Take(), 1u);
  EXPECT_EQ(Take(), 0u);
}

TEST_F(SharedReceiveQueueTest, TheLimitIsToldOfOnceForEachTimeItIsSet) {
  for (uint64_t id = 1; id <= 4; ++id) ASSERT_EQ(Post(id), 0);
  ASSERT_EQ(queue_.Modify({.srq_limit = 3}, IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(queue_.Query().srq_limit, 3u);
  Take();
  EXPECT_EQ(events_->count, 0) << "three are left, which is not below three";
  Take();
  EXPECT_EQ(events_->count, 1);
  EXPECT_EQ(queue_.Query().srq_limit, 0u);
  Take();
  EXPECT_EQ(events_->count, 1);
  ASSERT_EQ(queue_.Modify({.srq_limit = 1}, IBV_SRQ_LIMIT), 0);
  Take();
  EXPECT_EQ(events_->count, 2);
  ASSERT_EQ(queue_.Modify({.srq_limit = 1}, IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(Take(), 0u);
  EXPECT_EQ(events_->count, 3) << "a message that finds none shows that there are too few";
}

TEST_F(SharedReceiveQueueTest, ResizingKeepsWhatIsPosted) {
  for (uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(Post(id, 2), 0);
  Take();
  ASSERT_EQ(Post(4, 2), 0);
  ASSERT_EQ(Post(5, 2), 0);  // the ring is full and wraps
  EXPECT_EQ(queue_.Modify({.max_wr = 3}, IBV_SRQ_MAX_WR), EINVAL) << "four are posted";
  ASSERT_EQ(queue_.Modify({.max_wr = 100, .srq_limit = 50}, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(queue_.Query().max_wr, 100u);
  EXPECT_EQ(queue_.Query().max_sge, 2u);
  for (uint64_t id = 6; id < 102; ++id) ASSERT_EQ(Post(id, 2), 0);
  EXPECT_EQ(Post(102), ENOMEM);
  for (uint64_t id = 2; id < 102; ++id) {
    ASSERT_EQ(Take(), id);
    ASSERT_EQ(elements_[1].addr, id * 1000 + 500);
  }
}

TEST_F(SharedReceiveQueueTest, AnIllegalModificationChangesNothing) {
  EXPECT_EQ(queue_.Modify({.srq_limit = 5}, IBV_SRQ_LIMIT), EINVAL);
  EXPECT_EQ(queue_.Modify({.max_wr = 0, .srq_limit = 1}, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
  EXPECT_EQ(queue_.Modify({.max_wr = kMaxSrqWr + 1}, IBV_SRQ_MAX_WR), EINVAL);
  EXPECT_EQ(queue_.Modify({.max_wr = 10, .srq_limit = 11}, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
  EXPECT_EQ(queue_.Modify({.max_wr = 10}, 1 << 5 | IBV_SRQ_MAX_WR), EINVAL);
  EXPECT_EQ(queue_.Query().max_wr, 4u);
  EXPECT_EQ(queue_.Query().srq_limit, 0u);
  EXPECT_EQ(queue_.Modify({}, 0), 0);
}

TEST(SharedReceiveQueueThreads, EachReceiveIsGivenOutOnce) {
  constexpr uint64_t kReceives = 30000;
  constexpr int kTakers = 3;
  SharedReceiveQueue queue(std::make_shared<Pd>(1), 1, 64, 1, nullptr, nullptr);
  std::vector<std::atomic<int>> seen(kReceives);
  std::atomic<uint64_t> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kTakers; ++i) {
    threads.emplace_back([&] {
      ibv_sge element;
      ibv_recv_wr wr;
      while (taken.load() < kReceives) {
        if (!queue.Take(&wr, &element)) {
          std::this_thread::yield();
          continue;
        }
        EXPECT_EQ(element.addr, wr.wr_id);
        seen[wr.wr_id].fetch_add(1);
        taken.fetch_add(1);
      }
    });
  }
  threads.emplace_back([&] {  // a program that changes its mind about the size
    while (taken.load() < kReceives) {
      queue.Modify({.max_wr = 64 + static_cast<uint32_t>(taken.load() % 64)}, IBV_SRQ_MAX_WR);
      std::this_thread::yield();
    }
  });
  for (uint64_t id = 0; id < kReceives;) {
    ibv_sge element{id, 1, 1};
    ibv_recv_wr wr{.wr_id = id, .next = nullptr, .sg_list = &element, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    if (queue.Post(&wr, &bad) == 0) {
      ++id;
    } else {
      std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (uint64_t id = 0; id < kReceives; ++id) ASSERT_EQ(seen[id].load(), 1) << id;
}

}  // namespace
}  // namespace weft::sim
