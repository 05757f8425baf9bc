#include "mpi_hybrid/rma/refused_requests.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::mpi::rma {
namespace {

constexpr ProcessId kOrigin = 3, kOther = 4;

TEST(RefusedRequestsTest, AProcessThatTriesForLongTakesNoMoreMemoryThanOneThatTriesOnce) {
  constexpr uint64_t kTries = 1000;
  RefusedRequests refused;
  std::vector<Nonce> overheard;
  for (uint64_t count = 1; count <= kTries; ++count) {
    overheard.push_back(CountedNonce(count));
    ASSERT_FALSE(refused.Includes(kOrigin, overheard.back()));
    refused.Add(kOrigin, overheard.back());
    ASSERT_EQ(refused.size(), 1u);
  }
  for (const Nonce& nonce : overheard) EXPECT_TRUE(refused.Includes(kOrigin, nonce));
  EXPECT_FALSE(refused.Includes(kOrigin, CountedNonce(kTries + 1)));
}

TEST(RefusedRequestsTest, EachProcessCountsItsOwn) {
  RefusedRequests refused;
  refused.Add(kOrigin, CountedNonce(7));
  EXPECT_FALSE(refused.Includes(kOther, CountedNonce(1)));
  refused.Add(kOther, CountedNonce(2));
  refused.Forget(kOrigin);
  EXPECT_FALSE(refused.Includes(kOrigin, CountedNonce(7)));
  EXPECT_TRUE(refused.Includes(kOther, CountedNonce(1)));
}

}  // namespace
}  // namespace weft::mpi::rma
