// What is known of an algorithm without a model: its depth in latencies, the bytes and messages of a rank and a host.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "bench/collectives_model/mpich.h"
#include "bench/collectives_model/network.h"
#include "bench/collectives_model/programs.h"

namespace weft::bench {
namespace {

using mpi::Algorithm;
using mpi::Collective;

constexpr size_t kManyActions = 10'000'000;
constexpr double kLatency = 50;

// Only the latency between hosts takes time.
Network OnlyLatency() {
  return {.latency_us = kLatency,
          .host_latency_us = 0,
          .link_gbit = 1e12,
          .memory_gbit = 1e12,
          .message_cpu_us = 0,
          .host_message_cpu_us = 0,
          .reduce_ns_per_byte = 0};
}
// Only the link takes time: 1 us for each 1000 bits.
Network OnlyLink() {
  Network network = OnlyLatency();
  network.latency_us = 0;
  network.link_gbit = 1;
  return network;
}

Outcome Model(const Network& network, const Case& one, const Way& way, const Layout& layout) {
  const auto programs = MakePrograms(one, way, layout, kManyActions);
  EXPECT_TRUE(programs.has_value());
  const auto outcome = CarryOut(network, layout.host_of(), *programs);
  EXPECT_TRUE(outcome.has_value()) << NameOfCollective(one.collective) << " by " << ToString(way);
  return outcome.value_or(Outcome());
}
Outcome Model(const Network& network, const Case& one, Algorithm algorithm, int ranks) {
  return Model(network, one, {algorithm}, {ranks, ranks});
}

TEST(CollectivesModel, ABinomialBroadcastTakesALatencyForEachBitOfTheFarthestRank) {
  for (int ranks = 2; ranks <= 70; ++ranks) {
    int most = 0;
    for (int rank = 0; rank < ranks; ++rank) most = std::max(most, std::popcount(static_cast<unsigned>(rank)));
    const Outcome outcome = Model(OnlyLatency(), {Collective::kBroadcast, 8}, Algorithm::kBinomial, ranks);
    EXPECT_NEAR(outcome.us, kLatency * most, 0.01) << ranks;
    if (std::has_single_bit(static_cast<unsigned>(ranks))) EXPECT_EQ(1 << most, ranks);
    EXPECT_EQ(outcome.rank_messages, std::bit_width(static_cast<unsigned>(ranks - 1))) << ranks;  // of the root
  }
}

TEST(CollectivesModel, ARingTakesALatencyForEachStepAndDoublingOneForEachBit) {
  for (int ranks : {4, 16, 64}) {
    const int bits = std::countr_zero(static_cast<unsigned>(ranks));
    const Case one{Collective::kAllReduce, 4096};
    EXPECT_NEAR(Model(OnlyLatency(), one, Algorithm::kRing, ranks).us, 2 * (ranks - 1) * kLatency, 0.01);
    EXPECT_NEAR(Model(OnlyLatency(), one, Algorithm::kDoubling, ranks).us, bits * kLatency, 0.01);
    EXPECT_NEAR(Model(OnlyLatency(), one, Algorithm::kRabenseifner, ranks).us, 2 * bits * kLatency, 0.01);
  }
}

TEST(CollectivesModel, RingAndRabenseifnerMoveTwiceTheOtherRanksShareOfTheBytes) {
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kRabenseifner}) {
    for (int ranks : {2, 8, 32}) {
      const MPI_Aint bytes = 4096 * ranks;
      const Outcome outcome = Model(OnlyLink(), {Collective::kAllReduce, bytes}, algorithm, ranks);
      EXPECT_EQ(outcome.rank_bytes, 2 * bytes / ranks * (ranks - 1)) << ranks;
      EXPECT_EQ(outcome.host_bytes, outcome.rank_bytes);
      EXPECT_NEAR(outcome.us, static_cast<double>(outcome.rank_bytes) * 8 / 1000, 0.01);
    }
  }
}

TEST(CollectivesModel, OneLinkOfAHostIsSharedByItsRanks) {
  // Each of 4 ranks of a host sends 1000 bytes to the root on the other host, which alone waits for the link.
  const Outcome outcome = Model(OnlyLink(), {Collective::kGather, 1000}, {Algorithm::kLinear}, {8, 2});
  EXPECT_EQ(outcome.host_messages, 4);
  EXPECT_EQ(outcome.host_bytes, 4000);
  EXPECT_EQ(outcome.rank_messages, 7);
  EXPECT_NEAR(outcome.us, 4 * 8, 0.01);
}

TEST(CollectivesModel, ProcessorsOfAHostAreSharedByItsRanks) {
  Network network = OnlyLatency();
  network.reduce_ns_per_byte = 1;
  const Case one{Collective::kAllReduce, 8000};
  const Layout layout(8, 1);
  const double alone = Model(network, one, {Algorithm::kDoubling}, layout).us;
  EXPECT_NEAR(alone, 3 * 8, 0.01);
  network.processors = 2;
  EXPECT_NEAR(Model(network, one, {Algorithm::kDoubling}, layout).us, 4 * alone, 0.01);
}

TEST(CollectivesModel, AHostWithManyRanksMovesNoMoreThanOneRankAloneWould) {
  constexpr int kHosts = 8;
  const Layout layout(16 * kHosts, kHosts);
  const MPI_Aint bytes = 16 * 16 * kHosts;
  const int64_t of_one_rank = 2 * bytes / kHosts * (kHosts - 1);
  for (const Algorithm algorithm : {Algorithm::kRabenseifner, Algorithm::kRing})
    EXPECT_LE(Model(OnlyLink(), {Collective::kAllReduce, bytes}, {algorithm}, layout).host_bytes,
              of_one_rank + bytes / 4);
  EXPECT_EQ(Model(OnlyLink(), {Collective::kAllReduce, bytes}, {Algorithm::kRabenseifner}, layout).host_bytes,
            of_one_rank);
  EXPECT_LE(Model(OnlyLink(), {Collective::kReduce, bytes}, {Algorithm::kRabenseifner}, layout).host_bytes,
            of_one_rank);
  EXPECT_LE(Model(OnlyLink(), {Collective::kBroadcast, bytes}, {Algorithm::kScatterDoubling}, layout).host_bytes,
            of_one_rank);
}

TEST(CollectivesModel, InTwoLevelsOneMessageGoesToEachOtherHost) {
  const Layout layout(64, 8);
  const Case one{Collective::kBroadcast, 100};
  const Outcome library = Model(OnlyLatency(), one, WayOfWeft(one, layout), layout);
  EXPECT_NEAR(library.us, 3 * kLatency, 0.01);
  EXPECT_EQ(library.host_bytes, 3 * 100);
  EXPECT_EQ(Model(OnlyLatency(), one, WayOfMpich(one, layout), layout), library);
}

TEST(CollectivesModel, EveryAlgorithmEndsAndTakesTheSameTimeEachTime) {
  for (int collective = 0; collective <= static_cast<int>(Collective::kReduceScatter); ++collective) {
    for (const auto& [ranks, hosts] : {std::pair(1, 1), {7, 7}, {16, 4}, {22, 3}}) {
      for (const MPI_Aint bytes : {1, 1000, 300'000}) {
        const Layout layout(ranks, hosts);
        const Case one{static_cast<Collective>(collective), bytes};
        std::vector<Way> ways = AllWays(one, layout);
        ways.push_back(WayOfWeft(one, layout));
        ways.push_back(WayOfMpich(one, layout));
        for (const Way& way : ways) {
          const Outcome first = Model({}, one, way, layout);
          EXPECT_EQ(Model({}, one, way, layout), first) << NameOfCollective(one.collective) << " by " << ToString(way);
          EXPECT_EQ(first.host_messages > 0, hosts > 1) << NameOfCollective(one.collective) << " by " << ToString(way);
        }
      }
    }
  }
}

TEST(CollectivesModel, ProgramsThatDoNotMatchHaveNoOutcome) {
  const std::vector<int> hosts = {0, 1};
  const Action send{Action::Kind::kSend, 1, 8}, receive{Action::Kind::kReceive, 0, 8};
  EXPECT_TRUE(CarryOut({}, hosts, std::vector<Program>{{send}, {receive}}).has_value());
  EXPECT_FALSE(CarryOut({}, hosts, std::vector<Program>{{send}, {}}).has_value());
  EXPECT_FALSE(CarryOut({}, hosts, std::vector<Program>{{}, {receive}}).has_value());
}

TEST(CollectivesModel, WhatIsTooLargeIsLeftOut) {
  const Layout layout(64, 64);
  EXPECT_FALSE(MakePrograms({Collective::kAllReduce, 8}, {Algorithm::kRing}, layout, 1000).has_value());
  EXPECT_FALSE(
      MakePrograms({Collective::kGather, MPI_Aint{1} << 30}, {Algorithm::kLinear}, layout, kManyActions).has_value());
}

TEST(CollectivesModel, MpichChoosesByItsControlVariables) {
  const auto choice = [](Collective collective, MPI_Aint bytes, int ranks, int hosts) {
    return ToString(WayOfMpich({collective, bytes}, {ranks, hosts}));
  };
  EXPECT_EQ(choice(Collective::kBroadcast, 12287, 64, 64), "binomial");
  EXPECT_EQ(choice(Collective::kBroadcast, 12288, 64, 64), "scatter_doubling");
  EXPECT_EQ(choice(Collective::kBroadcast, 12288, 65, 65), "scatter_ring");
  EXPECT_EQ(choice(Collective::kBroadcast, 524288, 64, 64), "scatter_ring");
  EXPECT_EQ(choice(Collective::kBroadcast, 12287, 64, 8), "binomial+binomial");
  EXPECT_EQ(choice(Collective::kBroadcast, 524288, 64, 8), "scatter_ring");
  EXPECT_EQ(choice(Collective::kAllReduce, 2048, 32, 32), "doubling");
  EXPECT_EQ(choice(Collective::kAllReduce, 2052, 32, 32), "rabenseifner");
  EXPECT_EQ(choice(Collective::kAllReduce, 2052, 1024, 1024), "doubling");  // fewer elements than ranks
  EXPECT_EQ(choice(Collective::kAllReduce, 1 << 20, 64, 16), "rabenseifner+rabenseifner");
  EXPECT_EQ(choice(Collective::kAllToAll, 256, 7, 7), "linear");
  EXPECT_EQ(choice(Collective::kAllToAll, 256, 8, 8), "bruck");
  EXPECT_EQ(choice(Collective::kAllToAll, 32769, 8, 8), "pairwise");
}

}  // namespace
}  // namespace weft::bench
