#include "mpi_hybrid/coll/tuning.h"

#include <gtest/gtest.h>

namespace weft::mpi {
namespace {

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
