#include "mpi_hybrid/rma/window_hints.h"

#include <gtest/gtest.h>

#include <string>

namespace weft::mpi {
namespace {

using std::string;

string InForce(int flavor, const char* key, const char* value) {
  const auto given = MakeRef<Info>();
  given->Set(key, value);
  return HintsOfWindow(flavor, given.get())->Get(key).value_or("not there");
}

TEST(WindowHints, AreTheStandardsUnlessGiven) {
  const Ref<Info> hints = HintsOfWindow(MPI_WIN_FLAVOR_CREATE, nullptr);
  EXPECT_EQ(hints->Get("no_locks"), "false");
  EXPECT_EQ(hints->Get("accumulate_ordering"), "rar,raw,war,waw");
  EXPECT_EQ(hints->Get("accumulate_ops"), "same_op_no_op");
  EXPECT_EQ(hints->Get("mpi_accumulate_granularity"), "0");
  EXPECT_EQ(hints->Get("same_size"), "false");
  EXPECT_EQ(hints->Get("same_disp_unit"), "false");
  EXPECT_EQ(hints->Get("alloc_shared_noncontig"), "false");
  EXPECT_FALSE(hints->Get("mpi_minimum_memory_alignment"));
}

TEST(WindowHints, AreKeptWhereTheKeyCanHaveThem) {
  const auto of = [](const char* key, const char* value) { return InForce(MPI_WIN_FLAVOR_CREATE, key, value); };
  EXPECT_EQ(of("no_locks", "true"), "true");
  EXPECT_EQ(of("no_locks", "maybe"), "false");
  EXPECT_EQ(of("accumulate_ordering", "none"), "none");
  EXPECT_EQ(of("accumulate_ordering", "waw,rar"), "waw,rar");
  for (const char* wrong : {"", ",", "rar,", "rar,none", "rar waw", "RAR"}) EXPECT_EQ(of("accumulate_ordering", wrong), "rar,raw,war,waw") << wrong;
  EXPECT_EQ(of("accumulate_ops", "same_op"), "same_op");
  EXPECT_EQ(of("accumulate_ops", "any"), "same_op_no_op");
  EXPECT_EQ(of("mpi_accumulate_granularity", "16"), "16");
  for (const char* wrong : {"", "-1", "8k", " 8", "99999999999999999999"}) EXPECT_EQ(of("mpi_accumulate_granularity", wrong), "0") << wrong;
  EXPECT_EQ(of("of_no_meaning", "true"), "not there");
}

TEST(WindowHints, OfMemoryHoldForWindowsThatAllocateIt) {
  const char* const apart = "alloc_shared_noncontig";
  EXPECT_EQ(InForce(MPI_WIN_FLAVOR_SHARED, apart, "true"), "true");
  EXPECT_EQ(InForce(MPI_WIN_FLAVOR_ALLOCATE, apart, "true"), "false");
  const char* const alignment = "mpi_minimum_memory_alignment";
  EXPECT_EQ(InForce(MPI_WIN_FLAVOR_ALLOCATE, alignment, "4096"), "4096");
  for (const char* wrong : {"0", "3", "8192", "-64", "page"}) EXPECT_EQ(InForce(MPI_WIN_FLAVOR_ALLOCATE, alignment, wrong), "not there") << wrong;
  EXPECT_EQ(InForce(MPI_WIN_FLAVOR_CREATE, alignment, "64"), "not there");
  EXPECT_EQ(InForce(MPI_WIN_FLAVOR_SHARED, alignment, "64"), "not there") << "in one piece, parts begin where the one before ends";
  const auto both = MakeRef<Info>();
  both->Set(apart, "true");
  both->Set(alignment, "64");
  EXPECT_EQ(HintsOfWindow(MPI_WIN_FLAVOR_SHARED, both.get())->Get(alignment), "64");
}

TEST(WindowHints, OfMemoryCannotBeChangedAfterwards) {
  const Ref<Info> hints = HintsOfWindow(MPI_WIN_FLAVOR_SHARED, nullptr);
  const auto given = MakeRef<Info>();
  given->Set("alloc_shared_noncontig", "true");
  given->Set("mpi_minimum_memory_alignment", "64");
  given->Set("no_locks", "true");
  given->Set("same_size", "perhaps");
  given->Set("weft_ways", "none");
  ChangeHintsOfWindow(*hints, *given);
  EXPECT_EQ(hints->Get("alloc_shared_noncontig"), "false");
  EXPECT_FALSE(hints->Get("mpi_minimum_memory_alignment"));
  EXPECT_EQ(hints->Get("no_locks"), "true");
  EXPECT_EQ(hints->Get("same_size"), "false");
  EXPECT_FALSE(hints->Get("weft_ways"));
}

}  // namespace
}  // namespace weft::mpi
