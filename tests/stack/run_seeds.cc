#include "tests/stack/run_seeds.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "base/log.h"

namespace weft::sim {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

}  // namespace

void RunSeeds(uint64_t part, const std::string& target, uint64_t count, const MakeWireForRun& make_wire, const MakeWorld& make_world) {
  const bool one = std::getenv("RANDOM_RUN_SEED") != nullptr;
  SilenceWarnings(!one);
  if (one && part != 0) return;
  const uint64_t runs = one ? 1 : FromEnvironment("RANDOM_RUN_COUNT", count) / kSeedParts;
  const uint64_t first = one ? FromEnvironment("RANDOM_RUN_SEED", 1) : 1 + part * runs;
  uint64_t connected = 0, cut = 0, completed = 0;
  int failures = 0;
  for (uint64_t seed = first; seed < first + runs && failures < 5; ++seed) {
    const std::unique_ptr<Wire> wire = make_wire();
    const std::unique_ptr<World> world = make_world ? make_world(seed) : nullptr;
    const RunResult result = RunRandomWork(seed, wire.get(), world.get());
    connected += result.connected;
    cut += result.cut;
    completed += static_cast<uint64_t>(result.completed);
    if (!result.failure.empty()) {
      ++failures;
      ADD_FAILURE() << "seed " << seed << ": " << result.failure << "\nreplay: RANDOM_RUN_SEED=" << seed << " bazel test " << target
                    << " --test_env=RANDOM_RUN_SEED";
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

}  // namespace weft::sim
