#include "mpi_hybrid/coll/tuning.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

namespace weft::mpi {
namespace {

constexpr MPI_Aint kAny = std::numeric_limits<MPI_Aint>::max();
constexpr MPI_Aint kKi = 1024;

TEST(Tuning, WhatTheTableChoosesIsLegal) {
  for (int collective = 0; collective <= static_cast<int>(Collective::kReduceScatter); ++collective) {
    for (int ranks = 1; ranks <= 65; ++ranks) {
      for (MPI_Aint bytes = 0; bytes < MPI_Aint{1} << 40; bytes = bytes * 2 + 1) {
        for (bool commutative : {false, true}) {
          const auto which = static_cast<Collective>(collective);
          const Algorithm chosen = Choose(which, bytes, ranks, commutative);
          EXPECT_NE(chosen, Algorithm::kAutomatic);
          EXPECT_TRUE(IsLegal(which, chosen, ranks, commutative)) << collective << " " << ranks << " " << bytes;
        }
      }
    }
  }
}

// Up to `bytes`.
struct UpTo {
  MPI_Aint bytes;
  Algorithm algorithm;
};
struct Measured {
  Collective collective;
  std::vector<int> ranks;
  std::vector<UpTo> choices;
  bool commutative = true;
};

TEST(Tuning, UpTo8RanksTheMeasuredSizesDecide) {
  const std::vector<int> any = {1, 2, 3, 4, 5, 6, 7, 8};
  const Measured all[] = {
      {Collective::kBroadcast, {1, 2, 3, 4}, {{kAny, Algorithm::kBinomial}}},
      {Collective::kBroadcast, {5, 6, 7}, {{64 * kKi, Algorithm::kBinomial}, {kAny, Algorithm::kScatterRing}}},
      {Collective::kBroadcast,
       {8},
       {{64 * kKi, Algorithm::kBinomial}, {512 * kKi, Algorithm::kScatterDoubling}, {kAny, Algorithm::kScatterRing}}},
      {Collective::kGather, {1, 2, 3, 4, 5, 6, 7}, {{kAny, Algorithm::kLinear}}},
      {Collective::kGather, {8}, {{2 * kKi, Algorithm::kBinomial}, {kAny, Algorithm::kLinear}}},
      {Collective::kScatter, {1, 2, 3, 4, 5, 6, 7}, {{kAny, Algorithm::kLinear}}},
      {Collective::kScatter, {8}, {{2 * kKi, Algorithm::kBinomial}, {kAny, Algorithm::kLinear}}},
      {Collective::kAllGather, {1, 2, 4, 8}, {{kAny, Algorithm::kDoubling}}},
      {Collective::kAllGather, {3, 5, 6, 7}, {{512 * kKi, Algorithm::kBruck}, {kAny, Algorithm::kRing}}},
      {Collective::kAllGatherV, any, {{64 * kKi, Algorithm::kBruck}, {kAny, Algorithm::kRing}}},
      {Collective::kAllToAll, {1, 2, 3}, {{kAny, Algorithm::kLinear}}},
      {Collective::kAllToAll, {4, 5, 6, 7, 8}, {{1 * kKi, Algorithm::kBruck}, {kAny, Algorithm::kLinear}}},
      {Collective::kReduce, {1, 2, 3, 4}, {{kAny, Algorithm::kBinomial}}},
      {Collective::kReduce, {5, 6, 7, 8}, {{64 * kKi, Algorithm::kBinomial}, {kAny, Algorithm::kRabenseifner}}},
      {Collective::kReduce, any, {{kAny, Algorithm::kBinomial}}, false},
      {Collective::kAllReduce, {1, 2}, {{48 * kKi, Algorithm::kDoubling}, {kAny, Algorithm::kRabenseifner}}},
      {Collective::kAllReduce,
       {3, 4, 5, 6, 7, 8},
       {{48 * kKi, Algorithm::kDoubling}, {64 * kKi, Algorithm::kRabenseifner}, {kAny, Algorithm::kRing}}},
      {Collective::kAllReduce, any, {{kAny, Algorithm::kDoubling}}, false},
      {Collective::kReduceScatter, any, {{128 * kKi, Algorithm::kHalving}, {kAny, Algorithm::kPairwise}}},
      {Collective::kReduceScatter, any, {{16 * kKi, Algorithm::kDoubling}, {kAny, Algorithm::kPairwise}}, false},
  };
  for (const Measured& one : all) {
    for (const int ranks : one.ranks) {
      MPI_Aint least = 0;
      for (const UpTo& choice : one.choices) {
        for (const MPI_Aint bytes : {least, least + (choice.bytes - least) / 2, choice.bytes}) {
          EXPECT_EQ(Choose(one.collective, bytes, ranks, one.commutative), choice.algorithm)
              << NameOfCollective(one.collective) << ", " << ranks << " ranks, " << bytes << " bytes";
        }
        if (choice.bytes != kAny) least = choice.bytes + 1;
      }
    }
  }
}

TEST(Tuning, AnAllreduceGoesRoundARingOnlyIfEachRankHasManyBytes) {
  for (const int ranks : {16, 32, 128, 1024, 8192}) {
    EXPECT_EQ(Choose(Collective::kAllReduce, 128 * kKi * ranks, ranks), Algorithm::kRabenseifner) << ranks;
    EXPECT_EQ(Choose(Collective::kAllReduce, 129 * kKi * ranks, ranks), Algorithm::kRing) << ranks;
  }
  for (const int ranks : {9, 31, 96}) {
    EXPECT_EQ(Choose(Collective::kAllReduce, 16 * kKi * ranks, ranks), Algorithm::kRabenseifner) << ranks;
    EXPECT_EQ(Choose(Collective::kAllReduce, 17 * kKi * ranks, ranks), Algorithm::kRing) << ranks;
  }
  // Measured on two processors over loopback: a ring took more than four times as long.
  EXPECT_EQ(Choose(Collective::kAllReduce, 1'120'000, 32), Algorithm::kRabenseifner);
  EXPECT_EQ(Choose(Collective::kAllReduce, 1'120'000, 96), Algorithm::kRabenseifner);
}

TEST(Tuning, AGatherOfManyRanksGoesUpATreeWithLongerBlocksThanOneOfFew) {
  for (const Collective collective : {Collective::kGather, Collective::kScatter}) {
    for (const auto& [ranks, most] :
         {std::pair(9, 2 * kKi), {127, 2 * kKi}, {128, 4 * kKi}, {511, 4 * kKi}, {512, 16 * kKi}}) {
      EXPECT_EQ(Choose(collective, most, ranks), Algorithm::kBinomial) << ranks;
      EXPECT_EQ(Choose(collective, most + 1, ranks), Algorithm::kLinear) << ranks;
    }
  }
}

// The algorithms that take a message of each rank after the other.
bool TakesALatencyForEachRank(Algorithm algorithm) {
  return algorithm == Algorithm::kRing || algorithm == Algorithm::kScatterRing ||
         algorithm == Algorithm::kPairwise;
}

TEST(Tuning, AThousandRanksTakeNoLatencyForEachRankForAQuarterMegabyte) {
  for (const Collective collective : {Collective::kBroadcast, Collective::kAllGather, Collective::kAllGatherV,
                                      Collective::kReduce, Collective::kAllReduce, Collective::kReduceScatter}) {
    for (const int ranks : {1000, 1024, 1025, 10'000}) {
      EXPECT_FALSE(TakesALatencyForEachRank(Choose(collective, 250'000, ranks)))
          << NameOfCollective(collective) << ", " << ranks << " ranks";
    }
  }
}

TEST(Tuning, TheSettingForcesAnAlgorithmWhereItIsLegal) {
  ASSERT_TRUE(ConfigureCollectives("bcast:scatter_doubling,allreduce:ring").ok());
  EXPECT_EQ(Choose(Collective::kBroadcast, 1, 4), Algorithm::kScatterDoubling);
  EXPECT_NE(Choose(Collective::kBroadcast, 1, 3), Algorithm::kScatterDoubling);
  EXPECT_EQ(Choose(Collective::kAllReduce, 1, 3, true), Algorithm::kRing);
  EXPECT_EQ(Choose(Collective::kAllReduce, 1, 3, false), Algorithm::kDoubling);
  ASSERT_TRUE(ConfigureCollectives("").ok());
  EXPECT_EQ(Choose(Collective::kBroadcast, 1, 4), Algorithm::kBinomial);
  ASSERT_TRUE(ConfigureCollectives(nullptr).ok());
}

TEST(Tuning, UnknownNamesAreRefusedAndNamed) {
  Error error = ConfigureCollectives("bcast:binomial,broadcast:ring");
  EXPECT_EQ(error.mpi_class(), MPI_ERR_ARG);
  EXPECT_NE(error.message().find("\"broadcast\" is not one of the collectives bcast, gather"), std::string::npos)
      << error.message();
  error = ConfigureCollectives("allreduce:bruck");
  EXPECT_EQ(error.mpi_class(), MPI_ERR_ARG);
  EXPECT_NE(error.message().find("\"bruck\" is not one of the algorithms of allreduce: doubling, ring, rabenseifner"),
            std::string::npos)
      << error.message();
  EXPECT_FALSE(ConfigureCollectives("bcast").ok());
  EXPECT_FALSE(ConfigureCollectives("bcast:").ok());
  EXPECT_FALSE(ConfigureCollectives(",").ok());
}

}  // namespace
}  // namespace weft::mpi
