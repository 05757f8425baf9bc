#include "sim/queues/completion_queue.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sim/queues/any_queue_pair.h"
#include "sim/net/virtual_network.h"

namespace {
std::atomic<uint64_t> g_yields{0};
}  // namespace

// In the place of the C library's.
extern "C" int sched_yield() noexcept {
  g_yields.fetch_add(1);
  return static_cast<int>(syscall(SYS_sched_yield));
}

namespace weft::sim {
namespace {

using std::chrono::microseconds;

// What a completion queue needs to know a network.
class IdleQueuePair : public AnyQueuePair {
 public:
  explicit IdleQueuePair(transport::Network& network) : network_(network) {}
  ibv_qp_type type() const override { return IBV_QPT_RC; }
  uint32_t number() const override { return 5; }
  const ibv_qp_cap& capabilities() const override { return capabilities_; }
  int PostSend(ibv_send_wr*, ibv_send_wr**, bool) override { return EINVAL; }
  int PostReceive(ibv_recv_wr*, ibv_recv_wr**) override { return EINVAL; }
  int Modify(const ibv_qp_attr&, int) override { return EINVAL; }
  void Query(ibv_qp_attr*, ibv_qp_init_attr*) override {}
  void Destroy() override {}
  void DriveInline(bool) override {}
  void FlushDeferred() override {}
  transport::Network& network() const override { return network_; }
  std::shared_ptr<llp::LentMemory> ForgetRegion(const RegionInfo&) override { return nullptr; }

 private:
  transport::Network& network_;
  ibv_qp_cap capabilities_{};
};

ibv_wc Completion(uint64_t id, ibv_wc_status status = IBV_WC_SUCCESS, uint32_t qp_num = 5) {
  ibv_wc completion{};
  completion.wr_id = id;
  completion.status = status;
  completion.qp_num = qp_num;
  return completion;
}

TEST(CompletionQueueTest, ResizingKeepsOrderAcrossTheEndOfTheRing) {
  CompletionQueue queue(4, nullptr, nullptr, nullptr, {.timestamps = true});
  ibv_wc out[8];
  uint64_t before[4], after[8];
  for (uint64_t id = 0; id < 3; ++id) ASSERT_TRUE(queue.Push(Completion(id), false));
  ASSERT_EQ(queue.Poll(2, out, before), 2);
  for (uint64_t id = 3; id < 6; ++id) ASSERT_TRUE(queue.Push(Completion(id), false));
  EXPECT_EQ(queue.Resize(3), EINVAL) << "four are queued";
  EXPECT_EQ(queue.capacity(), 4);
  ASSERT_EQ(queue.Resize(8), 0);
  for (uint64_t id = 6; id < 10; ++id) ASSERT_TRUE(queue.Push(Completion(id), false));
  ASSERT_EQ(queue.Poll(8, out, after), 8);
  for (uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(out[i].wr_id, i + 2);
    EXPECT_GE(after[i], i == 0 ? before[1] : after[i - 1]);
  }
  ASSERT_EQ(queue.Resize(1), 0);
  EXPECT_EQ(queue.Poll(8, out), 0);
}

// Who spins until its queue pairs are connected waits for the network's thread. On a machine with more of them than processors that thread had a
// turn once in many time slices.
TEST(CompletionQueueTest, APollOfQueuePairsThatAreNotConnectedGivesTheProcessorAway) {
  VirtualNetwork network(1);
  const auto queue = std::make_shared<CompletionQueue>(4, nullptr, nullptr, nullptr);
  ibv_wc out;
  const auto yields_of = [&](int polls) {
    const uint64_t before = g_yields.load();
    for (int i = 0; i < polls; ++i) EXPECT_EQ(queue->Poll(1, &out), 0);
    return g_yields.load() - before;
  };
  EXPECT_EQ(yields_of(1000), 0u) << "nobody uses it";
  queue->users.fetch_add(1);
  EXPECT_GE(yields_of(1000), 30u);
  const auto idle = std::make_shared<IdleQueuePair>(network);
  queue->Attach(idle, 0);
  EXPECT_EQ(yields_of(1000), 0u) << "it drives them itself";
  queue->Detach(idle.get());
}

// One that another thread drives for as long as the test wants.
class BusyQueuePair final : public IdleQueuePair {
 public:
  using IdleQueuePair::IdleQueuePair;
  void DriveInline(bool) override {
    driven.store(true);
    while (!free.load()) std::this_thread::yield();
  }
  std::atomic<bool> driven{false}, free{false};
};

// The state that /proc has for a thread: R runs or could, S sleeps.
char StateOf(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(stat, text);
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= text.size() ? '?' : text[name_end + 2];
}

// A queue pair is driven by system calls. A thread of real-time priority that spun for its end would keep the driver off the processor.
TEST(CompletionQueueTest, WhoWaitsForAnotherThreadThatDrivesSleeps) {
  VirtualNetwork network(1);
  const auto queue = std::make_shared<CompletionQueue>(4, nullptr, nullptr, nullptr);
  const auto busy = std::make_shared<BusyQueuePair>(network);
  queue->Attach(busy, 0);
  std::thread driver([&] {
    ibv_wc out;
    queue->Poll(1, &out);
  });
  while (!busy->driven.load()) std::this_thread::yield();
  std::atomic<pid_t> waiter{0};
  std::thread waiting([&] {
    waiter.store(gettid());
    queue->RequestNotify(false);
  });
  while (waiter.load() == 0) std::this_thread::yield();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  char state = '?';
  while ((state = StateOf(waiter.load())) != 'S' && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(state, 'S');
  busy->free.store(true);
  driver.join();
  waiting.join();
  queue->Detach(busy.get());
}

// Remembers how often it had been driven when the program was about to sleep.
class AwaitedQueuePair final : public IdleQueuePair {
 public:
  using IdleQueuePair::IdleQueuePair;
  void DriveInline(bool) override {
    if (drives.fetch_add(1) != 0) return;
    while (!free.load()) std::this_thread::yield();
  }
  void FlushDeferred() override { drives_before_flush = drives.load(); }
  std::atomic<int> drives{0};
  std::atomic<bool> free{false};
  int drives_before_flush = 0;
};

TEST(CompletionQueueTest, WhoWaitsForAnotherThreadThatDrivesIsNext) {
  VirtualNetwork network(1);
  const auto queue = std::make_shared<CompletionQueue>(4, nullptr, nullptr, nullptr);
  const auto counting = std::make_shared<AwaitedQueuePair>(network);
  queue->Attach(counting, 0);
  std::atomic<bool> done{false};
  std::thread driver([&] {
    ibv_wc out;
    while (!done.load()) queue->Poll(1, &out);
  });
  while (counting->drives.load() == 0) std::this_thread::yield();
  std::atomic<pid_t> waiter{0};
  std::thread waiting([&] {
    waiter.store(gettid());
    queue->RequestNotify(false);
    done.store(true);
  });
  while (waiter.load() == 0) std::this_thread::yield();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (StateOf(waiter.load()) != 'S' && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  counting->free.store(true);
  waiting.join();
  driver.join();
  EXPECT_EQ(counting->drives_before_flush, 1);
  queue->Detach(counting.get());
}

TEST(CompletionQueueTest, ResizingLosesNothingWhileCompletionsComeAndGo) {
  constexpr uint64_t kCompletions = 200'000;
  constexpr int kSmallest = 64;
  CompletionQueue queue(kSmallest, nullptr, nullptr, nullptr);
  std::atomic<uint64_t> polled{0};
  std::thread pusher([&] {
    for (uint64_t id = 0; id < kCompletions; ++id) {
      while (id - polled.load() >= kSmallest) std::this_thread::yield();
      ASSERT_TRUE(queue.Push(Completion(id), false));
    }
  });
  std::thread resizer([&] {
    int size = kSmallest;
    while (polled.load() < kCompletions) {
      size = size * 7 % 1009 + kSmallest;
      ASSERT_EQ(queue.Resize(size), 0);
      std::this_thread::yield();
    }
  });
  ibv_wc out[16];
  for (uint64_t expected = 0; expected < kCompletions;) {
    const int count = queue.Poll(16, out);
    for (int i = 0; i < count; ++i) ASSERT_EQ(out[i].wr_id, expected++);
    polled.store(expected);
    if (count == 0) std::this_thread::yield();
  }
  pusher.join();
  resizer.join();
}

TEST(CompletionQueueTest, ForgettingAQueuePairKeepsTheStampsOfTheOthers) {
  CompletionQueue queue(4, nullptr, nullptr, nullptr, {.timestamps = true});
  for (uint64_t id = 0; id < 4; ++id) queue.Push(Completion(id, IBV_WC_SUCCESS, id % 2 == 0 ? 1 : 2), false);
  queue.Forget(1);
  ibv_wc out[4];
  uint64_t stamps[4] = {};
  ASSERT_EQ(queue.Poll(4, out, stamps), 2);
  EXPECT_EQ(out[0].wr_id, 1u);
  EXPECT_EQ(out[1].wr_id, 3u);
  EXPECT_GT(stamps[0], 0u);
  EXPECT_GE(stamps[1], stamps[0]);
}

TEST(CompletionQueueTest, AQueueThatIgnoresOverrunsLosesTheOldest) {
  CompletionQueue queue(2, nullptr, nullptr, nullptr, {.ignore_overrun = true});
  for (uint64_t id = 0; id < 5; ++id) EXPECT_TRUE(queue.Push(Completion(id), false));
  ibv_wc out[4];
  ASSERT_EQ(queue.Poll(4, out), 2);
  EXPECT_EQ(out[0].wr_id, 3u);
  EXPECT_EQ(out[1].wr_id, 4u);
}

// Counts how often it is looked at.
class CountingQueuePair final : public IdleQueuePair {
 public:
  using IdleQueuePair::IdleQueuePair;
  void DriveInline(bool) override { ++driven; }
  void FlushDeferred() override { ++flushed; }
  bool RunErrand() override {
    ++errands;
    return !std::exchange(busy, false);
  }

  Errand errand;
  int driven = 0, flushed = 0, errands = 0;
  bool busy = false;  // once
};

class ManyQueuePairsTest : public ::testing::TestWithParam<int> {
 protected:
  ManyQueuePairsTest() {
    for (int i = 0; i < GetParam(); ++i) {
      queue_pairs_.push_back(std::make_shared<CountingQueuePair>(network_));
      queue_->Attach(queue_pairs_.back(), 0, &queue_pairs_.back()->errand);
    }
  }
  ~ManyQueuePairsTest() override {
    for (const auto& qp : queue_pairs_) queue_->Detach(qp.get());
  }
  void Poll() {
    ibv_wc out;
    ASSERT_EQ(queue_->Poll(1, &out), 0);
  }
  // How many of them were looked at since the last call.
  int Looked() {
    int looked = 0;
    for (const auto& qp : queue_pairs_) {
      looked += std::exchange(qp->driven, 0) + std::exchange(qp->flushed, 0) + std::exchange(qp->errands, 0);
    }
    return looked;
  }

  VirtualNetwork network_{1};
  std::shared_ptr<CompletionQueue> queue_ = std::make_shared<CompletionQueue>(4, nullptr, nullptr, nullptr);
  std::vector<std::shared_ptr<CountingQueuePair>> queue_pairs_;
};

INSTANTIATE_TEST_SUITE_P(Numbers, ManyQueuePairsTest, ::testing::Values(1, 4, 5, 1000));

TEST_P(ManyQueuePairsTest, APollThatFindsNothingAndAnArmLookAtNoMoreThanAtFew) {
  for (int i = 0; i < 100; ++i) {
    Poll();
    EXPECT_LE(Looked(), 4);
    queue_->RequestNotify(false);
    EXPECT_LE(Looked(), 4);
  }
}

TEST_P(ManyQueuePairsTest, AnErrandIsRunOnceByThePollAndKeptByTheArm) {
  if (!queue_->takes_errands()) {
    EXPECT_LE(GetParam(), 4);
    return;
  }
  CountingQueuePair& qp = *queue_pairs_[3];
  queue_->AddErrand(qp.errand);
  queue_->AddErrand(qp.errand);
  queue_->AddErrand(queue_pairs_[1]->errand);
  queue_->RequestNotify(false);
  EXPECT_EQ(qp.flushed, 1);
  EXPECT_EQ(Looked(), 2);
  Poll();
  EXPECT_EQ(qp.errands, 1);
  EXPECT_EQ(Looked(), 2);
  Poll();
  EXPECT_EQ(Looked(), 0);
  queue_->AddErrand(qp.errand);
  Poll();
  EXPECT_EQ(qp.errands, 1);
}

TEST_P(ManyQueuePairsTest, AnErrandOfAProgramThatDoesNotPollIsRunAllTheSame) {
  if (!queue_->takes_errands()) return;
  queue_->AddErrand(queue_pairs_[0]->errand);
  network_.RunFor(microseconds(2000));
  EXPECT_EQ(queue_pairs_[0]->errands, 1);
  Poll();
  EXPECT_EQ(Looked(), 1);
  // Also when it polled once in between.
  queue_->AddErrand(queue_pairs_[0]->errand);
  network_.RunFor(microseconds(10));
  Poll();
  queue_->AddErrand(queue_pairs_[1]->errand);
  network_.RunFor(microseconds(2000));
  EXPECT_EQ(queue_pairs_[1]->errands, 1);
}

TEST_P(ManyQueuePairsTest, AnErrandWhoseQueuePairIsBusyIsRunAgain) {
  if (!queue_->takes_errands()) return;
  CountingQueuePair& qp = *queue_pairs_[0];
  qp.busy = true;
  queue_->AddErrand(qp.errand);
  Poll();
  EXPECT_EQ(qp.errands, 1);
  Poll();
  EXPECT_EQ(qp.errands, 2);
  Poll();
  EXPECT_EQ(qp.errands, 2);
  // Also by the timer, where there are meanwhile so few that polls look at each.
  queue_->AddErrand(qp.errand);
  for (size_t i = 1; i < queue_pairs_.size(); ++i) queue_->Detach(queue_pairs_[i].get());
  EXPECT_FALSE(queue_->takes_errands());
  qp.busy = true;
  network_.RunFor(microseconds(2000));
  EXPECT_EQ(qp.errands, 4);
}

TEST_P(ManyQueuePairsTest, AQueuePairThatIsDetachedTakesItsErrandAlong) {
  for (const auto& qp : queue_pairs_) queue_->AddErrand(qp->errand);
  for (size_t i = 0; i < queue_pairs_.size(); i += 2) queue_->Detach(queue_pairs_[i].get());
  Looked();
  queue_->AddErrand(queue_pairs_[0]->errand);  // too late
  Poll();
  EXPECT_EQ(queue_pairs_[0]->errands + queue_pairs_[0]->driven, 0);
  EXPECT_EQ(Looked(), GetParam() / 2);
}

class ModerationTest : public ::testing::Test {
 protected:
  ModerationTest() : queue_(std::make_shared<CompletionQueue>(64, channel_, nullptr, this)) {
    queue_->Attach(std::make_shared<IdleQueuePair>(network_), 0);
    queue_->Moderate(4, microseconds(100));
    queue_->RequestNotify(false);
  }
  bool Told() { return channel_->TryPop().has_value(); }
  void Push(int count) {
    for (int i = 0; i < count; ++i) queue_->Push(Completion(1), false);
  }

  VirtualNetwork network_{1};
  std::shared_ptr<CompletionChannel> channel_ = std::make_shared<CompletionChannel>();
  std::shared_ptr<CompletionQueue> queue_;
};

TEST_F(ModerationTest, AnEventTellsOfSeveral) {
  Push(3);
  EXPECT_FALSE(Told());
  Push(1);
  EXPECT_TRUE(Told());
  network_.RunFor(microseconds(1000));
  EXPECT_FALSE(Told()) << "the timer finds nothing more to tell";
}

TEST_F(ModerationTest, OrOfFewAfterThePeriod) {
  Push(1);
  network_.RunFor(microseconds(99));
  EXPECT_FALSE(Told());
  network_.RunFor(microseconds(2));
  EXPECT_TRUE(Told());
  EXPECT_FALSE(Told());
}

TEST_F(ModerationTest, AnErrorIsToldOfAtOnce) {
  queue_->Push(Completion(1, IBV_WC_WR_FLUSH_ERR), false);
  EXPECT_TRUE(Told());
}

TEST_F(ModerationTest, WithoutACountOrAPeriodThereIsNone) {
  queue_->Moderate(1, microseconds(100));
  Push(1);
  EXPECT_TRUE(Told());
  queue_->Moderate(4, microseconds(0));
  ibv_wc out[4];
  queue_->Poll(4, out);
  queue_->RequestNotify(false);
  Push(1);
  EXPECT_TRUE(Told());
}

TEST_F(ModerationTest, ARetiredQueueIsSilent) {
  Push(1);
  queue_->Retire();
  network_.RunFor(microseconds(1000));
  EXPECT_FALSE(Told());
}

TEST_F(ModerationTest, AQueueThatIsGoneIsNotTouched) {
  Push(1);
  queue_.reset();
  network_.RunFor(microseconds(1000));
  EXPECT_FALSE(Told());
}

}  // namespace
}  // namespace weft::sim
