#include "mpi_hybrid/p2p/impi/impi_contexts.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::mpi {
namespace {

Ref<Group> GroupOf(std::vector<ProcessId> members) {
  auto group = MakeRef<Group>();
  group->members = std::move(members);
  return group;
}

TEST(ImpiContextTable, TranslatesBothContextsOfACommunicator) {
  ImpiContextTable table;
  table.Add(0, 0, GroupOf({0, 1, 2}));
  const ContextId context = *ImpiContextTable::For(6);
  table.Add(context, 6, GroupOf({2, 0}));
  EXPECT_EQ(table.OnWire(0), 0U);
  EXPECT_EQ(table.OnWire(1), 1U);
  EXPECT_EQ(table.OnWire(context + 1), 7U);
  EXPECT_EQ(table.Here(7), context + 1);
  EXPECT_EQ(table.Here(8), std::nullopt);
  EXPECT_EQ(table.OnWire(8), std::nullopt);  // of one client
  table.Remove(context);
  EXPECT_EQ(table.Here(6), std::nullopt);
  EXPECT_EQ(table.OnWire(context), std::nullopt);
}

TEST(ImpiContextTable, KnowsTheRanksOfTheGroupThatSends) {
  ImpiContextTable table;
  table.Add(0, 0, GroupOf({4, 2}));
  EXPECT_TRUE(table.HasRank(1, 0, 4));
  EXPECT_TRUE(table.HasRank(0, 1, 2));
  EXPECT_FALSE(table.HasRank(0, 0, 2));
  EXPECT_FALSE(table.HasRank(0, 2, 4));
  EXPECT_FALSE(table.HasRank(0, -1, 4));
  EXPECT_FALSE(table.HasRank(2, 0, 4));
}

TEST(ImpiContextTable, StaysBelowPartitionedCommunication) {
  constexpr uint64_t kEnd = (uint64_t{1} << 31) - ImpiContextTable::kFirst - 1;
  EXPECT_EQ(ImpiContextTable::For(kEnd - 1), (1U << 31) - 2);
  EXPECT_EQ(ImpiContextTable::For(kEnd), std::nullopt);
  EXPECT_EQ(ImpiContextTable::For(~uint64_t{0}), std::nullopt);
}

}  // namespace
}  // namespace weft::mpi
