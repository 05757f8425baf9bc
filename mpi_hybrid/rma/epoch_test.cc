#include "mpi_hybrid/rma/epoch.h"

#include <gtest/gtest.h>
#include <mpi.h>

namespace weft::mpi::rma {
namespace {

// Four ranks.
class EpochTest : public testing::Test {
 protected:
  static void ExpectOk(const Error& error) { EXPECT_TRUE(error.ok()) << error.message(); }
  static void ExpectSync(const Error& error) { EXPECT_EQ(error.mpi_class(), MPI_ERR_RMA_SYNC) << error.message(); }

  EpochState epochs_{4};
};

TEST_F(EpochTest, NothingMayBeAccessedBeforeAnEpoch) {
  ExpectSync(epochs_.Access(0, false));
  ExpectSync(epochs_.MayFlush(0));
}

TEST_F(EpochTest, AFenceAllowsEverythingUntilOneThatSaysOtherwise) {
  ExpectOk(epochs_.Fence(false));
  ExpectOk(epochs_.Access(3, false));
  ExpectSync(epochs_.MayFree());
  ExpectOk(epochs_.Fence(true));
  ExpectSync(epochs_.Access(3, false));
  ExpectOk(epochs_.MayFree());
}

TEST_F(EpochTest, AFenceWithoutOperationsBehindItBlocksNoOtherEpoch) {
  ExpectOk(epochs_.Fence(false));
  ExpectOk(epochs_.Lock(1, false));
  ExpectOk(epochs_.Unlock(1));
  ExpectOk(epochs_.Fence(false));
  ExpectOk(epochs_.Start({0}));
  ExpectOk(epochs_.Complete());
  ExpectOk(epochs_.Fence(false));
  ExpectOk(epochs_.Access(1, false));
  ExpectSync(epochs_.Lock(1, false));
  ExpectSync(epochs_.Start({0}));
  ExpectSync(epochs_.Post({0}));
}

TEST_F(EpochTest, StartAllowsItsTargetsOnly) {
  ExpectOk(epochs_.Start({1, 2}));
  ExpectOk(epochs_.Access(2, false));
  ExpectSync(epochs_.Access(3, false));
  ExpectSync(epochs_.Start({3}));
  ExpectSync(epochs_.Fence(false));
  ExpectSync(epochs_.Lock(0, false));
  ExpectOk(epochs_.Complete());
  ExpectSync(epochs_.Complete());
}

TEST_F(EpochTest, AccessAndExposureGoTogether) {
  ExpectOk(epochs_.Post({0}));
  ExpectSync(epochs_.Post({0}));
  ExpectOk(epochs_.Start({1}));
  ExpectSync(epochs_.MayFree());
  ExpectOk(epochs_.Complete());
  ExpectSync(epochs_.Fence(false));
  ExpectOk(epochs_.Wait());
  ExpectSync(epochs_.Wait());
}

TEST_F(EpochTest, SeveralTargetsMayBeLocked) {
  ExpectOk(epochs_.Lock(0, false));
  ExpectOk(epochs_.Lock(2, true));
  ExpectSync(epochs_.Lock(2, false));
  ExpectOk(epochs_.Access(2, true));
  ExpectSync(epochs_.Access(1, true));
  ExpectOk(epochs_.MayFlush(0));
  ExpectOk(epochs_.MayFlush(-1));
  ExpectSync(epochs_.MayFlush(1));
  ExpectSync(epochs_.LockAll(false));
  ExpectOk(epochs_.Unlock(0));
  ExpectSync(epochs_.Unlock(0));
  ExpectSync(epochs_.Fence(false));
  ExpectOk(epochs_.Unlock(2));
  ExpectOk(epochs_.Fence(false));
}

TEST_F(EpochTest, LockAllIsForEverybodyAndEndsWithItsOwnCall) {
  ExpectOk(epochs_.LockAll(false));
  for (int rank = 0; rank < 4; ++rank) ExpectOk(epochs_.Access(rank, true));
  ExpectSync(epochs_.Lock(1, false));
  ExpectSync(epochs_.Unlock(1));
  ExpectOk(epochs_.UnlockAll());
  ExpectSync(epochs_.UnlockAll());
}

TEST_F(EpochTest, RequestsAreForPassiveTargets) {
  ExpectOk(epochs_.Fence(false));
  ExpectSync(epochs_.Access(0, true));
  ExpectOk(epochs_.Start({0}));
  ExpectSync(epochs_.Access(0, true));
}

}  // namespace
}  // namespace weft::mpi::rma
