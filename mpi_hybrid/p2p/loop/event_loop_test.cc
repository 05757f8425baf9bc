#include "mpi_hybrid/p2p/loop/event_loop.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "base/descriptor.h"

namespace weft::mpi {
namespace {

using Clock = EventLoop::Clock;

class CallingHandler final : public EventLoop::Handler {
 public:
  explicit CallingHandler(std::function<void()> call = [] {}) : call_(std::move(call)) {}
  void OnReady(uint32_t events) override {
    ++calls;
    last = events;
    call_();
  }
  int calls = 0;
  uint32_t last = 0;

 private:
  const std::function<void()> call_;
};

class Alarm final : public EventLoop::Timed {
 public:
  std::optional<Clock::time_point> deadline() const override { return at; }
  void OnTime(Clock::time_point now) override {
    EXPECT_GE(now, *at);
    ++rings;
    at.reset();
  }
  std::optional<Clock::time_point> at;
  int rings = 0;
};

class EventLoopTest : public testing::Test {
 protected:
  EventLoopTest() { EXPECT_TRUE(loop_.Open()); }
  static Descriptor Ready() { return Descriptor(eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC)); }
  static Descriptor NotReady() { return Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }

  EventLoop loop_;
};

TEST_F(EventLoopTest, AHandlerHearsOfWhatItAskedForUntilItsRegistrationEnds) {
  const Descriptor descriptor = Ready();
  CallingHandler handler;
  EventLoop::Registration registration(loop_, descriptor.get(), EPOLLIN, handler);
  EXPECT_TRUE(loop_.Dispatch(0));
  EXPECT_EQ(handler.last, static_cast<uint32_t>(EPOLLIN));
  registration.SetEvents(EPOLLIN | EPOLLOUT);
  EXPECT_TRUE(loop_.Sleep(0));
  EXPECT_EQ(handler.last, static_cast<uint32_t>(EPOLLIN | EPOLLOUT));
  registration.SetEvents(0);
  EXPECT_FALSE(loop_.Dispatch(0));
  registration.SetEvents(EPOLLIN);
  EventLoop::Registration moved = std::move(registration);
  EXPECT_TRUE(loop_.Dispatch(0));
  moved.End();
  EXPECT_FALSE(loop_.Dispatch(0));
  EXPECT_EQ(handler.calls, 3);
}

// Both are ready, and whoever is told first ends the other, whose event was collected already, and puts a third one
// into its place.
TEST_F(EventLoopTest, AnEventOfARegistrationThatEndedTellsNobody) {
  const Descriptor descriptors[2] = {Ready(), Ready()}, third = NotReady();
  EventLoop::Registration registrations[2], successor;
  CallingHandler never;
  int calls = 0;
  CallingHandler handlers[2] = {CallingHandler([&] {
                                  ++calls;
                                  registrations[1].End();
                                  successor = {loop_, third.get(), EPOLLIN, never};
                                }),
                                CallingHandler([&] {
                                  ++calls;
                                  registrations[0].End();
                                  successor = {loop_, third.get(), EPOLLIN, never};
                                })};
  for (int i = 0; i < 2; ++i) registrations[i] = {loop_, descriptors[i].get(), EPOLLIN, handlers[i]};
  EXPECT_TRUE(loop_.Dispatch(0));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(never.calls, 0);
}

TEST_F(EventLoopTest, AHandlerMayEndItself) {
  const Descriptor descriptor = Ready();
  EventLoop::Registration registration;
  CallingHandler handler([&] { registration.End(); });
  registration = {loop_, descriptor.get(), EPOLLIN, handler};
  EXPECT_TRUE(loop_.Dispatch(0));
  EXPECT_FALSE(loop_.Dispatch(0));
  EXPECT_EQ(handler.calls, 1);
}

TEST_F(EventLoopTest, AForeignDescriptorThatIsReadyMovesNothing) {
  const Descriptor descriptor = Ready();
  loop_.Watch(descriptor.get());
  EXPECT_FALSE(loop_.Dispatch(0)) << "a wait would go on polling, and keep the processor from others";
  loop_.Unwatch(descriptor.get());
}

TEST_F(EventLoopTest, AForeignDescriptorEndsASleepWhileItIsReady) {
  const Descriptor descriptor = Ready();
  loop_.Watch(descriptor.get());
  EXPECT_TRUE(loop_.Sleep(600'000));
  EXPECT_TRUE(loop_.Sleep(600'000)) << "its owner has not seen to it";
  loop_.Unwatch(descriptor.get());
  EXPECT_FALSE(loop_.Sleep(1));
}

TEST_F(EventLoopTest, AWakeEndsOneSleepAndIsLeftToTheSleeper) {
  loop_.Wake();
  loop_.Wake();
  EXPECT_FALSE(loop_.Dispatch(0)) << "a thread that polls is not the one that is woken";
  EXPECT_TRUE(loop_.Sleep(600'000));
  EXPECT_FALSE(loop_.Sleep(1));
  std::thread other([&] { loop_.Wake(); });
  EXPECT_TRUE(loop_.Sleep(600'000));
  other.join();
}

TEST_F(EventLoopTest, TheEarliestTimeEndsASleepAndOnlyItsOwnerIsTold) {
  Alarm soon, later;
  loop_.Add(soon);
  loop_.Add(later);
  const auto start = Clock::now();
  soon.at = start + std::chrono::milliseconds(5);
  later.at = start + std::chrono::hours(1);
  EXPECT_FALSE(loop_.Sleep(600'000));
  EXPECT_GE(Clock::now(), start + std::chrono::milliseconds(5));
  EXPECT_EQ(soon.rings, 1);
  EXPECT_EQ(later.rings, 0);
  // A time that has passed is dealt with by a look, too.
  later.at = start;
  EXPECT_FALSE(loop_.Dispatch(0));
  EXPECT_EQ(later.rings, 1);
  EXPECT_FALSE(loop_.Sleep(1));
}

class CountedNap final : public EventLoop::Nap {
 public:
  bool Take(std::chrono::milliseconds most) override {
    ++taken;
    EXPECT_LE(most, EventLoop::kLongestNap);
    const auto end = Clock::now() + most;
    while (Clock::now() < end) {
      if (news.exchange(false)) return true;
      std::this_thread::yield();
    }
    return false;
  }
  void End() override { news = true; }

  std::atomic<bool> news{false};
  int taken = 0;
};

TEST_F(EventLoopTest, ASleepBeginsWithANapWhileNothingUrgentIsWatched) {
  const Descriptor urgent = NotReady(), patient = Ready();
  CallingHandler handler, late;
  CountedNap nap;
  loop_.set_nap(&nap);
  EventLoop::Registration never(loop_, urgent.get(), EPOLLIN, handler);
  EXPECT_FALSE(loop_.Sleep(1));
  EXPECT_EQ(nap.taken, 0);
  EventLoop::Registration moved = std::move(never);
  moved.End();
  nap.news = true;
  EXPECT_TRUE(loop_.Sleep(600'000));
  EXPECT_EQ(nap.taken, 1);
  EventLoop::Registration may_wait(loop_, patient.get(), EPOLLIN, late, EventLoop::Urgency::kPatient);
  EXPECT_TRUE(loop_.Sleep(600'000)) << "after the nap";
  EXPECT_EQ(nap.taken, 2);
  EXPECT_EQ(late.calls, 1);
  // Naps that always bring news do not hide it either.
  for (int i = 0; i < 64; ++i) {
    nap.news = true;
    EXPECT_TRUE(loop_.Sleep(600'000));
  }
  EXPECT_EQ(late.calls, 2);
}

TEST_F(EventLoopTest, AWakeEndsANapAsWell) {
  CountedNap nap;
  loop_.set_nap(&nap);
  loop_.Wake();
  EXPECT_TRUE(loop_.Sleep(600'000));
  EXPECT_EQ(nap.taken, 0) << "it came before";
  EXPECT_FALSE(loop_.Sleep(1));
  for (int i = 0; i < 100; ++i) {
    std::thread other([&] { loop_.Wake(); });
    EXPECT_TRUE(loop_.Sleep(600'000));
    other.join();
    while (nap.news.exchange(false)) {
    }
    EXPECT_FALSE(loop_.Sleep(0));
  }
}

}  // namespace
}  // namespace weft::mpi
