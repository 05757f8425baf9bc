#include "mpi_hybrid/rma/incoming.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace {

std::vector<rdma_cm_id*> g_destroyed;

}  // namespace

// In place of the RNIC's.
extern "C" {
void rdma_destroy_qp(rdma_cm_id*) {}
int rdma_destroy_id(rdma_cm_id* id) {
  g_destroyed.push_back(id);
  return 0;
}
}

namespace weft::mpi::rma {
namespace {

constexpr ProcessId kProcess = 3;

TEST(IncomingTableTest, ThousandsOfConnectionsOneAfterTheOtherTakeOnePlace) {
  constexpr int kConnections = 4000;  // numbers of a place come again after 4096
  IncomingTable table;
  rdma_cm_id ids[2] = {};
  Incoming& stays = table.Add(kProcess, &ids[0]);
  std::set<uint32_t> numbers = {stays.index};
  for (int i = 0; i < kConnections; ++i) {
    g_destroyed.clear();
    const uint32_t index = table.Add(kProcess + 1, &ids[1]).index;
    ASSERT_TRUE(numbers.insert(index).second) << "a number for the second time";
    ASSERT_LE(table.places().size(), 2u);
    EXPECT_TRUE(g_destroyed.empty());
    table.Take(*table.Find(index)).reset();
    ASSERT_EQ(g_destroyed, std::vector<rdma_cm_id*>{&ids[1]});
  }
  EXPECT_EQ(table.Find(stays.index), &stays);
}

TEST(IncomingTableTest, TheNumberOfAConnectionThatIsGoneIsNotTheNextOnesInItsPlace) {
  IncomingTable table;
  const uint32_t gone = table.Add(kProcess, nullptr).index;
  table.Take(*table.Find(gone));
  const Incoming& next = table.Add(kProcess, nullptr);
  EXPECT_EQ(table.places().size(), 1u);
  EXPECT_EQ(table.Find(gone), nullptr);
  EXPECT_EQ(table.Find(next.index), &next);
  EXPECT_EQ(table.Find(next.index + 1), nullptr) << "a place that there is not";
}

TEST(IncomingTableTest, DroppedConnectionsAreToldOfOnce) {
  IncomingTable table;
  Incoming& first = table.Add(kProcess, nullptr);
  Incoming& second = table.Add(kProcess + 1, nullptr);
  table.Drop(first, "closed");
  table.Drop(first, "malformed");
  EXPECT_EQ(first.bad, "closed");
  table.Drop(second, "closed");
  table.TakeFromDropped(second);
  ASSERT_TRUE(table.any_dropped());
  EXPECT_EQ(&table.NextDropped(), &first);
  EXPECT_FALSE(table.any_dropped());
}

}  // namespace
}  // namespace weft::mpi::rma
