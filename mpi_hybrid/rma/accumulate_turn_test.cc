#include "mpi_hybrid/rma/accumulate_turn.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include "mpi_hybrid/rma/apply.h"

namespace weft::mpi::rma {
namespace {

constexpr int kRanks = 4, kTarget = 2;

class AccumulateTurnTest : public testing::Test {
 protected:
  AccumulateGuard GuardOf(int rank) {
    return {.atomics = true, .control = control_, .host = &host_, .target = kTarget, .me = rank};
  }
  AccumulateGuard GuardOfService() {
    AccumulateGuard guard = GuardOf(kTarget);
    guard.serves = true;
    return guard;
  }
  // The process of `rank` has ended.
  void End(int rank) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    host_.of(rank).control = control_;
    host_.of(rank).process = host::Process::Of(child);
  }
  static ElementType Double() {
    ElementType type;
    EXPECT_TRUE(FindElementType(MPI_DOUBLE, &type));
    return type;
  }

  alignas(64) std::array<uint8_t, 4096> memory_{};
  ControlBlock control_{memory_.data(), kRanks};
  HostRanks host_{kRanks};
};

TEST_F(AccumulateTurnTest, FewElementsAreNobodysHindrance) {
  const AccumulateGuard first = GuardOf(0), second = GuardOf(1);
  const AtomicTurn one(first), other(second);  // at the same time
  EXPECT_EQ(control_.signals[0].in_atomics, 1u);
  EXPECT_EQ(control_.signals[1].in_atomics, 1u);
}

TEST_F(AccumulateTurnTest, FewAndManyElementsOfRanksAndOfTheServiceLoseNothing) {
  constexpr uint32_t kElements = 300;
  constexpr int kTimes = 4000;
  std::vector<double> window(kElements);
  const std::vector<double> ones(kElements, 1.);
  const auto* given = reinterpret_cast<const uint8_t*>(ones.data());
  ASSERT_GT(kElements, GuardOf(0).many());
  std::vector<std::thread> threads;
  for (int i = 0; i <= kRanks; ++i) {
    threads.emplace_back([&, i] {
      const AccumulateGuard guard = i == kRanks ? GuardOfService() : GuardOf(i);
      const ElementType type = Double();
      for (int k = 0; k < kTimes; ++k) {
        const uint32_t few = static_cast<uint32_t>(k) % 3 + 1;
        auto* memory = reinterpret_cast<uint8_t*>(window.data());
        AccumulateElements(guard, MPI_SUM, type, given, memory, (k + i) % 4 == 0 ? kElements : few, nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  double first = 0, last = 0;
  for (int i = 0; i <= kRanks; ++i) {
    for (int k = 0; k < kTimes; ++k) {
      ++first;
      last += (k + i) % 4 == 0;
    }
  }
  EXPECT_EQ(window.front(), first);
  EXPECT_EQ(window.back(), last);
}

TEST_F(AccumulateTurnTest, OneWhoDiedAmidAtomicOperationsIsNotWaitedForTwice) {
  control_.signals[1].in_atomics = 1;
  control_.head->service_in_atomics = 1;
  End(1);
  End(kTarget);
  const AccumulateGuard guard = GuardOf(0);
  { const WholeTurn turn(guard); }
  EXPECT_EQ(control_.signals[1].in_atomics, 0u);
  EXPECT_EQ(control_.head->service_in_atomics, 0u);
}

TEST_F(AccumulateTurnTest, OneWhoDiedAloneWithTheMemoryIsInNobodysWay) {
  control_.head->accumulating = 1 + 3;
  End(3);
  const AccumulateGuard guard = GuardOf(0);
  { const AtomicTurn turn(guard); }
  EXPECT_EQ(control_.head->accumulating, 0u);
  control_.head->accumulating = 1 + 3;
  { const WholeTurn turn(guard); }
  EXPECT_EQ(control_.head->accumulating, 0u);
}

TEST_F(AccumulateTurnTest, NonsenseInTheWordsIsTakenBack) {
  control_.head->accumulating = 99;
  control_.signals[3].in_atomics = 7;
  const AccumulateGuard guard = GuardOf(0);
  { const AtomicTurn turn(guard); }
  { const WholeTurn turn(guard); }
  EXPECT_EQ(control_.head->accumulating, 0u);
  EXPECT_EQ(control_.signals[3].in_atomics, 0u);
}

// Another process wrote its number there. Of its own target only the service may have it besides, if there is one.
TEST_F(AccumulateTurnTest, AWordThatNamesARankWhichDoesNotHaveItIsItsOwn) {
  AccumulateGuard at_itself = GuardOf(kTarget);
  at_itself.served = false;
  for (const AccumulateGuard& guard : {GuardOf(0), at_itself}) {
    control_.head->accumulating = static_cast<uint32_t>(guard.me) + 1;
    { const AccumulateLock lock(guard); }
    EXPECT_EQ(control_.head->accumulating, 0u);
  }
}

// Another process wrote the number of a rank there that lives and has no turn. Only that rank could tell; but this one has a word that was overwritten, too.
TEST_F(AccumulateTurnTest, NobodyIsWaitedForOnceWordsOfThisRankAreFoundOverwritten) {
  struct Watch final : TurnWatch {
    bool IsOverwritten(int target, bool is_alone) override {
      EXPECT_EQ(target, kTarget);
      ++asked;
      alone = is_alone;
      return asked > 1;  // not at the first look
    }
    int asked = 0;
    bool alone = false;
  };
  AccumulateGuard guard = GuardOf(0);
  const auto expect_asked = [&](bool alone, auto&& take) {
    Watch watch;
    guard.watch = &watch;
    take();
    EXPECT_EQ(watch.asked, 2);
    EXPECT_EQ(watch.alone, alone);
    EXPECT_EQ(control_.head->accumulating, 0u);
  };
  control_.head->accumulating = 1 + 3;
  expect_asked(false, [&] { const AtomicTurn turn(guard); });
  control_.head->accumulating = 1 + 3;
  expect_asked(false, [&] { const AccumulateLock lock(guard); });
  control_.signals[3].in_atomics = 1;
  expect_asked(true, [&] { const WholeTurn turn(guard); });
}

TEST_F(AccumulateTurnTest, WhoIsAloneInTheWindowWaitsForNobody) {
  const AccumulateGuard alone{.atomics = true};
  const ElementType type = Double();
  std::vector<double> window(100, 1.), given(100, 2.);
  for (uint32_t count : {1u, 100u}) {
    AccumulateElements(alone, MPI_SUM, type, reinterpret_cast<uint8_t*>(given.data()), reinterpret_cast<uint8_t*>(window.data()),
                       count, nullptr);
  }
  EXPECT_EQ(window[0], 5.);
  EXPECT_EQ(window[99], 3.);
}

}  // namespace
}  // namespace weft::mpi::rma
