#include "mpi_hybrid/rma/element_atomics.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "mpi_hybrid/datatype/op.h"
#include "mpi_hybrid/datatype/predefined.h"

namespace weft::mpi::rma {
namespace {

constexpr MPI_Op kOps[] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX,  MPI_LAND,    MPI_LOR,  MPI_LXOR,
                           MPI_BAND, MPI_BOR, MPI_BXOR, MPI_REPLACE, MPI_NO_OP};

// Bytes of which any eight are a number that all operations like.
std::vector<uint8_t> Elements(const Basic& basic, int count, int seed) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count) * basic.size);
  for (int i = 0; i < count; ++i) {
    const int value = (seed * 7 + i * 3) % 11 - 5;
    uint8_t* at = bytes.data() + static_cast<size_t>(i) * basic.size;
    if (basic.kind == BasicKind::kFloat && basic.size == 8) {
      const double number = value;
      std::memcpy(at, &number, 8);
    } else if (basic.kind == BasicKind::kFloat && basic.size == 4) {
      const float number = static_cast<float>(value);
      std::memcpy(at, &number, 4);
    } else {
      const auto number = static_cast<int64_t>(value);
      std::memcpy(at, &number, basic.size);
    }
  }
  return bytes;
}

TEST(ElementAtomicsTest, DoWhatTheOperationsDoForEveryTypeThatHasThem) {
  constexpr int kCount = 5;
  int pairs = 0;
  for (const Basic& basic : AllBasics()) {
    ElementType type;
    alignas(16) uint8_t memory[kCount * 16], expected[kCount * 16];
    if (!FindElementType(basic.handle, &type) || !HasAtomics(type, memory)) continue;
    if (basic.kind == BasicKind::kComplex) continue;  // halves of such bytes are no numbers
    for (MPI_Op op : kOps) {
      if (!Op::IsDefined(op, basic.handle)) continue;
      ++pairs;
      const std::vector<uint8_t> before = Elements(basic, kCount, 1), given = Elements(basic, kCount, 2);
      std::memcpy(memory, before.data(), before.size());
      std::memcpy(expected, before.data(), before.size());
      Op::ApplyBasic(op, basic.handle, given.data(), expected, kCount);
      std::vector<uint8_t> fetched(before.size());
      AccumulateAtomically(op, type, given.data(), memory, kCount, fetched.data());
      EXPECT_EQ(std::memcmp(memory, expected, before.size()), 0) << basic.name << ", operation " << std::hex << op;
      EXPECT_EQ(fetched, before) << basic.name;
    }
  }
  EXPECT_GT(pairs, 100);
}

TEST(ElementAtomicsTest, AreNotForPairsLongElementsAndWhatIsNotAligned) {
  alignas(16) uint8_t memory[64];
  ElementType type;
  ASSERT_TRUE(FindElementType(MPI_LONG, &type));
  EXPECT_TRUE(HasAtomics(type, memory + 8));
  EXPECT_FALSE(HasAtomics(type, memory + 4));
  ASSERT_TRUE(FindElementType(MPI_2INT, &type));
  EXPECT_FALSE(HasAtomics(type, memory));
  ASSERT_TRUE(FindElementType(MPI_LONG_DOUBLE, &type));
  EXPECT_FALSE(HasAtomics(type, memory));
  ASSERT_TRUE(FindElementType(MPI_C_DOUBLE_COMPLEX, &type));
  EXPECT_FALSE(HasAtomics(type, memory));
}

TEST(ElementAtomicsTest, ComparesAndSwaps) {
  alignas(8) int64_t memory = 5;
  int64_t compare = 4, given = 9, fetched = 0;
  ElementType type;
  ASSERT_TRUE(FindElementType(MPI_INT64_T, &type));
  const auto swap = [&] {
    CompareAndSwapAtomically(type, reinterpret_cast<uint8_t*>(&compare), reinterpret_cast<uint8_t*>(&given),
                             reinterpret_cast<uint8_t*>(&memory), reinterpret_cast<uint8_t*>(&fetched));
  };
  swap();
  EXPECT_EQ(memory, 5);
  EXPECT_EQ(fetched, 5);
  compare = 5;
  swap();
  EXPECT_EQ(memory, 9);
  EXPECT_EQ(fetched, 5);
}

TEST(ElementAtomicsTest, ThreadsThatAddLoseNothing) {
  alignas(8) double sum[3] = {};
  ElementType type;
  ASSERT_TRUE(FindElementType(MPI_DOUBLE, &type));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const double ones[3] = {1, 2, 3};
      for (int k = 0; k < 20000; ++k) {
        AccumulateAtomically(MPI_SUM, type, reinterpret_cast<const uint8_t*>(ones), reinterpret_cast<uint8_t*>(sum), 3, nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum[0], 80000);
  EXPECT_EQ(sum[1], 160000);
  EXPECT_EQ(sum[2], 240000);
}

}  // namespace
}  // namespace weft::mpi::rma
