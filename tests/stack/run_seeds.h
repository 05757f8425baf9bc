#ifndef TESTS_STACK_RUN_SEEDS_H_
#define TESTS_STACK_RUN_SEEDS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tests/stack/random_run.h"

namespace weft::sim {

inline constexpr uint64_t kSeedParts = 4;  // parts into which the seeds are divided, one for each shard

// Runs one part of `count` seeds, each over a wire from `make_wire` (null: the wire that rdma_cm uses). A failure names
// the seed and how `target` replays it. RANDOM_RUN_SEED=N runs only that seed; RANDOM_RUN_COUNT changes the number of
// seeds.
using MakeWireForRun = std::function<std::unique_ptr<Wire>()>;
using MakeWorld = std::function<std::unique_ptr<World>(uint64_t seed)>;
void RunSeeds(uint64_t part, const std::string& target, uint64_t count, const MakeWireForRun& make_wire, const MakeWorld& make_world = nullptr);

}  // namespace weft::sim

#endif  // TESTS_STACK_RUN_SEEDS_H_
