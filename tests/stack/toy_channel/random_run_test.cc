#include <gtest/gtest.h>

#include "tests/stack/run_seeds.h"
#include "tests/stack/toy_channel/toy_channel.h"

namespace weft::sim {
namespace {

class ToyChannelTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(ToyChannelTest, RandomWorkOverQueuesOfUlpdusThatArriveOutOfOrderDoesWhatTheModelSays) {
  RunSeeds(GetParam(), "//tests/stack/toy_channel:random_run_test", 8'000, [] { return std::make_unique<ToyWire>(); });
}

INSTANTIATE_TEST_SUITE_P(Quarter, ToyChannelTest, ::testing::Range(uint64_t{0}, kSeedParts));

}  // namespace
}  // namespace weft::sim
