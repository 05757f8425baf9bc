#include "mpi_hybrid/rma/send_order.h"

#include <gtest/gtest.h>

namespace weft::mpi::rma {
namespace {

TEST(SendOrderTest, ACompletionStandsForUnsignaledOnesBeforeIt) {
  SendOrder order;
  EXPECT_EQ(order.completed(), 0u);
  order.Completed(3);
  EXPECT_EQ(order.completed(), 3u);
}

TEST(SendOrderTest, AReadIsNotCompleteWhenAWriteBehindItIs) {
  SendOrder order;
  order.ReadPosted(2);
  order.Completed(1);
  EXPECT_EQ(order.completed(), 1u);
  order.Completed(5);
  EXPECT_EQ(order.completed(), 1u);
  order.Completed(2);
  EXPECT_EQ(order.completed(), 5u);
}

TEST(SendOrderTest, TheOldestReadHoldsBackYoungerOnesAndWhatIsBetweenThem) {
  SendOrder order;
  order.ReadPosted(1);
  order.ReadPosted(3);
  order.Completed(2);
  order.Completed(4);
  EXPECT_EQ(order.completed(), 0u);
  order.Completed(1);
  EXPECT_EQ(order.completed(), 2u);
  order.Completed(3);
  EXPECT_EQ(order.completed(), 4u);
}

TEST(SendOrderTest, AReadsCompletionStandsForWritesBeforeIt) {
  SendOrder order;
  order.ReadPosted(4);
  order.Completed(4);
  EXPECT_EQ(order.completed(), 4u);
}

TEST(SendOrderTest, MoreReadsThanFitAtOnceInTurn) {
  SendOrder order;
  uint64_t posted = 0, completed = 0;
  while (posted < SendOrder::kMostReads) order.ReadPosted(++posted);
  for (int i = 0; i < 1000; ++i) {
    order.Completed(++completed);
    EXPECT_EQ(order.completed(), completed);
    order.ReadPosted(++posted);
  }
}

}  // namespace
}  // namespace weft::mpi::rma
