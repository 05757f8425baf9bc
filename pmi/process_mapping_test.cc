#include "pmi/process_mapping.h"

#include <gtest/gtest.h>

namespace weft::pmi {
namespace {

ProcessMapping Of(const char* text) {
  const auto mapping = ProcessMapping::Parse(text);
  EXPECT_TRUE(mapping.has_value()) << text;
  return *mapping;
}

TEST(ProcessMappingTest, EachRankHasItsNode) {
  const ProcessMapping mapping = Of("(vector,(0,2,4),(0,1,3),(2,1,1))");
  const int nodes[] = {0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 2};
  for (int rank = 0; rank < 12; ++rank) EXPECT_EQ(mapping.NodeOf(rank), nodes[rank]) << rank;
  EXPECT_EQ(mapping.RanksOnNodeOf(8, 12), 7);
  EXPECT_EQ(mapping.RanksOnNodeOf(5, 12), 4);
  EXPECT_EQ(mapping.RanksOnNodeOf(11, 12), 1);
}

// mpiexec -hosts a:2,b -n 7: what pmi/placement writes is one round.
TEST(ProcessMappingTest, VectorIsGoneThroughAgainUntilAllRanksArePlaced) {
  const ProcessMapping mapping = Of("(vector,(0,1,2),(1,1,1))");
  const int nodes[] = {0, 0, 1, 0, 0, 1, 0};
  for (int rank = 0; rank < 7; ++rank) EXPECT_EQ(mapping.NodeOf(rank), nodes[rank]) << rank;
  EXPECT_EQ(mapping.RanksOnNodeOf(6, 7), 5);
  EXPECT_EQ(mapping.RanksOnNodeOf(5, 7), 2);
  EXPECT_EQ(Of("(vector,(0,1,4))").RanksOnNodeOf(7, 9), 9);
}

TEST(ProcessMappingTest, LastRoundMayBeCutShort) { EXPECT_EQ(Of("(vector,(0,2,4))").RanksOnNodeOf(5, 6), 2); }

TEST(ProcessMappingTest, NodesOfRanksAreWrittenAndReadBack) {
  const struct {
    std::vector<int> nodes;
    const char* text;
  } cases[] = {{{0}, "(vector,(0,1,1))"},
               {{0, 0, 1, 1, 2, 2}, "(vector,(0,3,2))"},
               {{0, 0, 1}, "(vector,(0,1,2),(1,1,1))"},
               {{0, 1, 0, 1}, "(vector,(0,2,1),(0,2,1))"},
               {{1, 0, 0, 1, 1, 2}, "(vector,(1,1,1),(0,2,2),(2,1,1))"}};
  for (const auto& [nodes, text] : cases) {
    EXPECT_EQ(ProcessMapping::Of(nodes).ToString(), text);
    const ProcessMapping read = Of(text);
    for (int rank = 0; rank < static_cast<int>(nodes.size()); ++rank) {
      EXPECT_EQ(read.NodeOf(rank), nodes[static_cast<size_t>(rank)]) << text << " " << rank;
      EXPECT_EQ(ProcessMapping::Of(nodes).NodeOf(rank), read.NodeOf(rank)) << text << " " << rank;
    }
  }
}

TEST(ProcessMappingTest, OneNodeIsTold) {
  EXPECT_TRUE(Of("(vector,(0,1,4))").is_one_node());
  EXPECT_TRUE(Of("(vector,(0,1,2),(0,1,1))").is_one_node());
  EXPECT_FALSE(Of("(vector,(0,2,1))").is_one_node());
  EXPECT_FALSE(Of("(vector,(0,1,2),(1,1,2))").is_one_node());
}

TEST(ProcessMappingTest, WhatIsNoMappingIsNotUnderstood) {
  for (const char* text :
       {"", "(vector", "(vector,", "(vector,)", "(vector,(0,1,4)", "(vector,(0,1,4)) ", "(vector,(0,1))",
        "x(vector,(0,1,4))", "vector", "(vector,(0,0,4))", "(vector,(0,1,-4))", "(vector,(-1,1,4))",
        "(vector,(0,1,2),x)", "(vector,(0,1048576,1048576))", "(vector,(0,1,1048576),(0,1,1048576))"}) {
    EXPECT_FALSE(ProcessMapping::Parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace weft::pmi
