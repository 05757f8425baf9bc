#include "mpi_hybrid/core/process_table.h"

#include <gtest/gtest.h>

namespace weft::mpi {
namespace {

class ProcessTableTest : public ::testing::Test {
 protected:
  ProcessTableTest() { table_.Start(secret_, 1, 3); }
  ProcessName Foreign(int rank) const { return {.job = bond_.id, .rank = rank}; }

  const JobSecret secret_ = *JobSecret::FromHex("00112233445566778899aabbccddeeff");
  const Bond bond_ = Bond::Of(JobSecret::Random()), other_bond_ = Bond::Of(JobSecret::Random());
  ProcessTable table_;
};

TEST_F(ProcessTableTest, RanksOfTheJobAreThereFromTheStartToTheEnd) {
  EXPECT_EQ(table_.self(), 1);
  const JobId job = Bond::Of(secret_).id;
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(table_.NameOf(rank), (ProcessName{.job = job, .rank = rank}));
    EXPECT_EQ(table_.Find({.job = job, .rank = rank}), rank);
    table_.Hold(rank, 1);
    table_.Hold(rank, -1);
    table_.Left(rank);
    EXPECT_EQ(table_.Find({.job = job, .rank = rank}), rank);
  }
  EXPECT_FALSE(table_.Find({.job = job, .rank = 3}));
  EXPECT_FALSE(table_.Find({.job = job, .rank = -1}));
  EXPECT_FALSE(table_.has_parting());
}

TEST_F(ProcessTableTest, TheJobsIdTellsNothingOfItsSecretAndIsItsOwn) {
  EXPECT_EQ(Bond::Of(secret_).id, Bond::Of(secret_).id);
  EXPECT_NE(Bond::Of(secret_).id, bond_.id);
}

TEST_F(ProcessTableTest, AProcessKeepsItsNumberUntilNoCommunicatorAndNoGroupNeedsIt) {
  const ProcessId process = table_.Add(Foreign(7), bond_, {{"key", "value"}});
  EXPECT_EQ(process, 3);
  EXPECT_EQ(table_.limit(), 4);
  EXPECT_EQ(table_.CardsOf(process).at("key"), "value");
  table_.Name(process, 1);
  table_.Hold(process, 2);
  table_.Hold(process, -1);
  EXPECT_FALSE(table_.has_parting());
  EXPECT_EQ(table_.Find(Foreign(7)), process);
  table_.Hold(process, -1);
  EXPECT_EQ(table_.TakeParting(), std::vector<ProcessId>{process});
  EXPECT_FALSE(table_.Find(Foreign(7))) << "it would be taken for connected";
  EXPECT_EQ(table_.NameOf(process), Foreign(7)) << "a group still names it";
  table_.Parted(process);
  EXPECT_EQ(table_.Add(Foreign(8), bond_, {}), 4) << "its number is taken";
  table_.Name(process, -1);
  EXPECT_EQ(table_.Add(Foreign(7), bond_, {}), process) << "now it is free";
}

TEST_F(ProcessTableTest, CountsHowOftenProcessesOfAJobAreHeld) {
  const ProcessId one = table_.Add(Foreign(7), bond_, {}), two = table_.Add(Foreign(8), bond_, {});
  const JobId job = Foreign(7).job;
  EXPECT_EQ(table_.HoldsOf({job}), 0);
  table_.Hold(one, 2);
  table_.Hold(two, 1);
  EXPECT_EQ(table_.HoldsOf({job}), 3);
  EXPECT_EQ(table_.HoldsOf({}), 0);
  EXPECT_EQ(table_.HoldsOf({other_bond_.id}), 0) << "another job";
  table_.Hold(one, -2);
  table_.Hold(two, -1);
  EXPECT_EQ(table_.HoldsOf({job}), 0);
}

TEST_F(ProcessTableTest, OneThatNobodyEverHeldPartsToo) {
  const ProcessId process = table_.Add(Foreign(7), bond_, {});
  table_.Name(process, 1);
  table_.Name(process, -1);
  EXPECT_EQ(table_.TakeParting(), std::vector<ProcessId>{process});
}

TEST_F(ProcessTableTest, WhoLeftIsNewWhenHeComesAgain) {
  const ProcessId process = table_.Add(Foreign(7), bond_, {});
  table_.Hold(process, 1);
  table_.Left(process);
  EXPECT_FALSE(table_.Find(Foreign(7)));
  const ProcessId again = table_.Add(Foreign(7), other_bond_, {});
  EXPECT_NE(again, process);
  table_.Hold(process, -1);
  EXPECT_EQ(table_.TakeParting(), std::vector<ProcessId>{process});
  EXPECT_EQ(table_.Find(Foreign(7)), again) << "the name is the later one's";
}

TEST_F(ProcessTableTest, ADeathIsOfThatProcessWhetherItIsKnownBeforeOrAfterwards) {
  const ProcessId known = table_.Add(Foreign(7), bond_, {});
  table_.Add(Foreign(8), bond_, {});
  EXPECT_FALSE(table_.has_died());
  table_.Died(Foreign(9));
  EXPECT_FALSE(table_.has_died()) << "nobody knows it";
  table_.Died(Foreign(7));
  table_.Died(Foreign(7));
  EXPECT_TRUE(table_.has_died());
  EXPECT_EQ(table_.TakeDied(), std::vector<ProcessId>{known});
  EXPECT_FALSE(table_.has_died());
  const ProcessId later = table_.Add(Foreign(9), bond_, {});
  EXPECT_EQ(table_.TakeDied(), std::vector<ProcessId>{later});
  table_.OpenDoor(bond_);
  table_.Died(Foreign(10));
  EXPECT_EQ(table_.Enter(bond_, Foreign(10)), later + 1) << "its connection came before the news";
  EXPECT_EQ(table_.TakeDied(), std::vector<ProcessId>{later + 1});
  table_.Died({.job = table_.own_name().job, .rank = 2});
  EXPECT_FALSE(table_.has_died()) << "of the own job others tell";
}

TEST_F(ProcessTableTest, ANumberThatIsFreeAgainIsNotThatOfADeadOne) {
  const ProcessId process = table_.Add(Foreign(7), bond_, {});
  table_.Hold(process, 1);
  table_.Died(Foreign(7));
  table_.Hold(process, -1);
  table_.TakeParting();
  table_.Parted(process);
  EXPECT_EQ(table_.Add(Foreign(8), bond_, {}), process);
  EXPECT_TRUE(table_.TakeDied().empty());
}

TEST_F(ProcessTableTest, RemembersSoManyDead) {
  for (int rank = 0; rank <= static_cast<int>(ProcessTable::kMostDead); ++rank) table_.Died(Foreign(rank));
  table_.Add(Foreign(0), bond_, {});
  EXPECT_TRUE(table_.TakeDied().empty());
  const ProcessId one = table_.Add(Foreign(1), bond_, {});
  EXPECT_EQ(table_.TakeDied(), std::vector<ProcessId>{one});
}

TEST_F(ProcessTableTest, OneEntersByTheBondThatHeHasOrByADoor) {
  EXPECT_FALSE(table_.BondToEnter(bond_.id, Foreign(7)));
  table_.OpenDoor(bond_);
  EXPECT_EQ(table_.BondToEnter(bond_.id, Foreign(7))->secret, bond_.secret);
  EXPECT_FALSE(table_.BondToEnter(other_bond_.id, Foreign(7)));
  EXPECT_FALSE(table_.BondToEnter(bond_.id, {.job = bond_.id, .rank = -1}));
  const ProcessId process = table_.Enter(bond_, Foreign(7));
  EXPECT_EQ(table_.Enter(bond_, Foreign(7)), process) << "on another connection";
  table_.OpenDoor(other_bond_);
  EXPECT_EQ(table_.Enter(other_bond_, Foreign(7)), process) << "he is the same by whichever door he comes";
}

// Each of the two may have entered the other by a bond that the other does not know first.
TEST_F(ProcessTableTest, OneWhomThisProcessLooksForAndWhoComesAtTheSameTimeIsOneWithTwoBonds) {
  const ProcessId process = table_.Add(Foreign(7), bond_, {});
  EXPECT_FALSE(table_.BondToEnter(other_bond_.id, Foreign(7)));
  table_.OpenDoor(other_bond_);
  EXPECT_TRUE(table_.BondToEnter(other_bond_.id, Foreign(7)));
  EXPECT_EQ(table_.Enter(other_bond_, Foreign(7)), process);
  EXPECT_EQ(table_.Find(Foreign(7)), process);
  EXPECT_EQ(table_.BondOf(process).id, bond_.id) << "by which he is being called";
  ASSERT_EQ(table_.BondsOf(process).size(), 2u);
  EXPECT_EQ(table_.BondsOf(process)[1].id, other_bond_.id);
}

TEST_F(ProcessTableTest, AllBondsCountUntilThereAreTooMany) {
  const ProcessId process = table_.Add(Foreign(7), bond_, {});
  table_.AddBond(process, other_bond_);
  table_.AddBond(process, other_bond_);
  EXPECT_EQ(table_.BondsOf(process).size(), 2u);
  EXPECT_TRUE(table_.BondToEnter(bond_.id, Foreign(7)));
  EXPECT_EQ(table_.BondToEnter(other_bond_.id, Foreign(7))->secret, other_bond_.secret);
  for (size_t i = 0; i < ProcessTable::kMostBonds; ++i) table_.AddBond(process, Bond::Of(JobSecret::Random()));
  EXPECT_EQ(table_.BondsOf(process).size(), ProcessTable::kMostBonds);
  EXPECT_EQ(table_.BondOf(process).id, bond_.id);
  EXPECT_FALSE(table_.BondToEnter(other_bond_.id, Foreign(7)));
}

TEST_F(ProcessTableTest, RanksOfTheJobEnterByTheJobsBondAlone) {
  const JobId job = Bond::Of(secret_).id;
  table_.OpenDoor(bond_);
  EXPECT_TRUE(table_.BondToEnter(job, {.job = job, .rank = 2}));
  EXPECT_FALSE(table_.BondToEnter(job, {.job = job, .rank = 3}));
  EXPECT_FALSE(table_.BondToEnter(bond_.id, {.job = job, .rank = 2}));
  EXPECT_FALSE(table_.BondToEnter(bond_.id, {.job = job, .rank = 3}));
  EXPECT_FALSE(table_.BondToEnter(job, Foreign(0)));
}

TEST_F(ProcessTableTest, ClosedDoorsAreForgottenInTheEnd) {
  table_.OpenDoor(bond_);
  table_.CloseDoor(bond_.id);
  EXPECT_TRUE(table_.BondToEnter(bond_.id, Foreign(7))) << "to be told that the port is closed";
  for (size_t i = 0; i < ProcessTable::kMostClosed; ++i) {
    const Bond next = Bond::Of(JobSecret::Random());
    table_.OpenDoor(next);
    table_.CloseDoor(next.id);
  }
  EXPECT_FALSE(table_.BondToEnter(bond_.id, Foreign(7)));
}

}  // namespace
}  // namespace weft::mpi
