#include "mpi_hybrid/core/handle.h"

#include <gtest/gtest.h>

namespace weft::mpi {
namespace {

TEST(HandleTableTest, HandlesSayTheirKindAndLeadToTheirObjects) {
  HandleTable<int> table(HandleKind::kGroup);
  int a, b;
  const int of_a = table.Add(&a), of_b = table.Add(&b);
  EXPECT_NE(of_a, of_b);
  EXPECT_TRUE(IsMade(of_a));
  EXPECT_TRUE(IsKind(of_a, HandleKind::kGroup));
  EXPECT_FALSE(IsKind(of_a, HandleKind::kComm));
  EXPECT_EQ(table.Find(of_a), &a);
  EXPECT_EQ(table.Find(of_b), &b);
}

TEST(HandleTableTest, WhatWasNeverGivenOutOrIsOfAnotherKindIsNotFound) {
  HandleTable<int> table(HandleKind::kGroup), other(HandleKind::kInfo);
  int a;
  const int of_a = table.Add(&a);
  EXPECT_EQ(table.Find(of_a + 1), nullptr);
  EXPECT_EQ(table.Find(0), nullptr);
  EXPECT_EQ(table.Find(-1), nullptr);
  EXPECT_EQ(other.Find(of_a), nullptr);
  table.Remove(of_a);
  EXPECT_EQ(table.Find(of_a), nullptr);
}

TEST(HandleTableTest, IndicesBelowTheFirstAreNeverGivenOut) {
  HandleTable<int> table(HandleKind::kDatatype, 5);
  int a;
  const int handle = table.Add(&a);
  EXPECT_EQ(HandleIndex(handle), 5u);
  for (int below = 0; below < 5; ++below) EXPECT_EQ(table.Find(handle - 1 - below), nullptr);
}

}  // namespace
}  // namespace weft::mpi
