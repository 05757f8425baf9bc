#include "mpi_hybrid/comm/group.h"

#include <gtest/gtest.h>

namespace weft::mpi {
namespace {

TEST(GroupTest, RankOfFindsMembersInAnyOrder) {
  const Ref<Group> group = MakeGroup({7, 1, 2, 5});
  EXPECT_EQ(group->RankOf(7), 0);
  EXPECT_EQ(group->RankOf(1), 1);
  EXPECT_EQ(group->RankOf(2), 2);
  EXPECT_EQ(group->RankOf(5), 3);
  for (int stranger : {-1, 0, 3, 4, 6, 8, 1000}) EXPECT_EQ(group->RankOf(stranger), MPI_UNDEFINED) << stranger;
}

TEST(GroupTest, UnionHasTheFirstGroupsOrderThenWhatTheSecondAdds) {
  EXPECT_EQ(Union(*MakeGroup({4, 2}), *MakeGroup({1, 2, 9}))->members, (std::vector<ProcessId>{4, 2, 1, 9}));
}

TEST(GroupTest, IntersectionAndDifferenceKeepTheFirstGroupsOrder) {
  const Ref<Group> a = MakeGroup({5, 3, 1, 4}), b = MakeGroup({1, 2, 3});
  EXPECT_EQ(Intersection(*a, *b)->members, (std::vector<ProcessId>{3, 1}));
  EXPECT_EQ(Difference(*a, *b)->members, (std::vector<ProcessId>{5, 4}));
}

TEST(GroupTest, IncludeReordersAndExcludeDoesNot) {
  const Ref<Group> group = MakeGroup({10, 11, 12, 13});
  EXPECT_EQ(Include(*group, {3, 0})->members, (std::vector<ProcessId>{13, 10}));
  EXPECT_EQ(Exclude(*group, {3, 0})->members, (std::vector<ProcessId>{11, 12}));
}

TEST(GroupTest, CompareTellsOrderFromMembership) {
  EXPECT_EQ(Compare(*MakeGroup({1, 2, 3}), *MakeGroup({1, 2, 3})), MPI_IDENT);
  EXPECT_EQ(Compare(*MakeGroup({1, 2, 3}), *MakeGroup({3, 1, 2})), MPI_SIMILAR);
  EXPECT_EQ(Compare(*MakeGroup({1, 2, 3}), *MakeGroup({1, 2, 4})), MPI_UNEQUAL);
  EXPECT_EQ(Compare(*MakeGroup({1, 2, 3}), *MakeGroup({1, 2})), MPI_UNEQUAL);
  EXPECT_EQ(Compare(*MakeGroup({}), *MakeGroup({})), MPI_IDENT);
}

TEST(GroupTest, EachHandleIsFreedOnce) {
  const Ref<Group> group = MakeGroup({0, 1});
  const MPI_Group first = Group::Give(group), second = Group::Give(group);
  EXPECT_NE(first, second);
  EXPECT_EQ(Group::Find(second)->members, group->members);
  Group::TakeBack(*Group::Find(first));
  EXPECT_EQ(Group::Find(first), nullptr);
  ASSERT_NE(Group::Find(second), nullptr);
  Group::TakeBack(*Group::Find(second));
  EXPECT_EQ(Group::Find(second), nullptr);
}

TEST(GroupTest, EveryEmptyGroupIsThePredefinedOne) {
  EXPECT_EQ(Group::Give(Difference(*MakeGroup({1}), *MakeGroup({1}))), MPI_GROUP_EMPTY);
  ASSERT_NE(Group::Find(MPI_GROUP_EMPTY), nullptr);
  EXPECT_EQ(Group::Find(MPI_GROUP_EMPTY)->size(), 0);
  EXPECT_EQ(Group::Find(MPI_GROUP_NULL), nullptr);
}

}  // namespace
}  // namespace weft::mpi
