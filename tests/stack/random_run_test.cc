#include "tests/stack/random_run.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/log.h"

namespace weft::sim {
namespace {

// RANDOM_RUN_SEED=N replays one run; RANDOM_RUN_COUNT changes how many there are.
uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

constexpr uint64_t kQuarters = 4;  // of the seeds, for as many shards

class RandomRunTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomRunTest, RandomWorkOverARoughNetworkDoesWhatTheModelSays) {
  SilenceWarnings(std::getenv("RANDOM_RUN_SEED") == nullptr);
  const bool one = std::getenv("RANDOM_RUN_SEED") != nullptr;
  if (one && GetParam() != 0) return;
  const uint64_t runs = one ? 1 : FromEnvironment("RANDOM_RUN_COUNT", 10'000) / kQuarters;
  const uint64_t first = one ? FromEnvironment("RANDOM_RUN_SEED", 1) : 1 + GetParam() * runs;
  uint64_t connected = 0, cut = 0, completed = 0;
  int failures = 0;
  for (uint64_t seed = first; seed < first + runs && failures < 5; ++seed) {
    const RunResult result = RunRandomWork(seed);
    connected += result.connected;
    cut += result.cut;
    completed += static_cast<uint64_t>(result.completed);
    if (!result.failure.empty()) {
      ++failures;
      ADD_FAILURE() << "seed " << seed << ": " << result.failure << "\nreplay: RANDOM_RUN_SEED=" << seed
                    << " bazel test //tests/stack:random_run_test --test_env=RANDOM_RUN_SEED";
    }
  }
  std::printf("seeds %llu to %llu: %llu connected, %llu with a fault, %llu work requests succeeded\n",
              static_cast<unsigned long long>(first), static_cast<unsigned long long>(first + runs - 1),
              static_cast<unsigned long long>(connected), static_cast<unsigned long long>(cut),
              static_cast<unsigned long long>(completed));
  if (runs >= 100) {
    EXPECT_GT(connected, runs * 2 / 3);
    EXPECT_GT(cut, runs / 5);
    EXPECT_GT(completed, runs);
  }
}

INSTANTIATE_TEST_SUITE_P(Quarter, RandomRunTest, ::testing::Range(uint64_t{0}, kQuarters));

}  // namespace
}  // namespace weft::sim
