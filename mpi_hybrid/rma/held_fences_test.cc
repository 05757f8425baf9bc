#include "mpi_hybrid/rma/held_fences.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace weft::mpi::rma {
namespace {

std::vector<uint32_t> CountedOf(HeldFences& fences, uint32_t waiting_connection) {
  std::vector<uint32_t> counted;
  fences.CountOthers([=](const HeldFences::Fence& held) { return held.connection == waiting_connection; },
                     [&](const HeldFences::Fence& held) { counted.push_back(held.number); });
  return counted;
}

TEST(HeldFences, CountsTheLastOneOfEachConnectionAndWindow) {
  HeldFences fences;
  fences.Hold({.connection = 1, .window = 1, .rank = 0, .number = 7});
  fences.Hold({.connection = 1, .window = 2, .rank = 0, .number = 3});
  fences.Hold({.connection = 2, .window = 1, .rank = 1, .number = 7});
  fences.Hold({.connection = 1, .window = 1, .rank = 0, .number = 8});
  EXPECT_EQ(CountedOf(fences, 0), (std::vector<uint32_t>{8, 3, 7}));
  EXPECT_TRUE(fences.empty());
}

TEST(HeldFences, KeepsThoseWhoseConnectionStillWrites) {
  HeldFences fences;
  fences.Hold({.connection = 1, .window = 1, .rank = 0, .number = 7});
  fences.Hold({.connection = 2, .window = 1, .rank = 1, .number = 9});
  EXPECT_EQ(CountedOf(fences, 1), std::vector<uint32_t>{9});
  EXPECT_FALSE(fences.empty());
  EXPECT_EQ(CountedOf(fences, 0), std::vector<uint32_t>{7});
  EXPECT_TRUE(CountedOf(fences, 0).empty());
}

}  // namespace
}  // namespace weft::mpi::rma
