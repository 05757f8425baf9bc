#include <gtest/gtest.h>

#include "tests/stack/run_seeds.h"

namespace weft::sim {
namespace {

class RandomRunTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomRunTest, RandomWorkOverARoughNetworkDoesWhatTheModelSays) {
  RunSeeds(GetParam(), "//tests/stack:random_run_test", 10'000, [] { return nullptr; });
}

INSTANTIATE_TEST_SUITE_P(Quarter, RandomRunTest, ::testing::Range(uint64_t{0}, kSeedParts));

}  // namespace
}  // namespace weft::sim
