#include "mpi_hybrid/rma/request_id.h"

#include <gtest/gtest.h>

namespace weft::mpi::rma {
namespace {

TEST(RequestIdTest, TellsProcessAndNumber) {
  const uint64_t id = RequestId::OfSend(77, 12345);
  EXPECT_FALSE(RequestId::IsReceive(id));
  EXPECT_EQ(RequestId::ProcessOf(id), 77u);
  EXPECT_EQ(RequestId::NumberOf(id, 12345), 12345u);
  EXPECT_EQ(RequestId::NumberOf(id, 12350), 12345u);
}

TEST(RequestIdTest, TellsProcessAndIndexOfAReceive) {
  const uint64_t id = RequestId::OfReceive(77, 15);
  EXPECT_TRUE(RequestId::IsReceive(id));
  EXPECT_EQ(RequestId::ProcessOf(id), 77u);
  EXPECT_EQ(RequestId::IndexOf(id), 15u);
}

// A link that makes a million requests a second comes there in 13 days.
TEST(RequestIdTest, KeepsProcessAndNumberBeyondTwoToTheFortyRequests) {
  for (const uint64_t number : {(uint64_t{1} << 40) - 1, uint64_t{1} << 40, (uint64_t{1} << 40) + 1, (uint64_t{5} << 40) + 3}) {
    const uint64_t id = RequestId::OfSend(77, number);
    EXPECT_FALSE(RequestId::IsReceive(id));
    EXPECT_EQ(RequestId::ProcessOf(id), 77u);
    for (const uint64_t behind : {0, 1, 31}) EXPECT_EQ(RequestId::NumberOf(id, number + behind), number);
  }
}

}  // namespace
}  // namespace weft::mpi::rma
