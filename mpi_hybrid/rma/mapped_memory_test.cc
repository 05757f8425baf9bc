#include "mpi_hybrid/rma/mapped_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

namespace weft::mpi::rma {
namespace {

constexpr ElementType kInts{MPI_INT, 4, 4, 4, 0, 0};

// A window of kPages pages; some may be unmapped.
class MappedMemoryTest : public testing::Test {
 protected:
  static constexpr uint64_t kPages = 1000;

  MappedMemoryTest() : page_(static_cast<uint64_t>(sysconf(_SC_PAGESIZE))) {
    window_.base = static_cast<uint8_t*>(mmap(nullptr, kPages * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    window_.size = kPages * page_;
  }
  ~MappedMemoryTest() override { munmap(window_.base, window_.size); }
  void Unmap(uint64_t page, uint64_t pages = 1) { ASSERT_EQ(munmap(window_.base + page * page_, pages * page_), 0); }
  // A word in each of `pages` pages.
  Block Column(uint64_t offset, uint32_t pages, int64_t stride_pages = 1) const { return {offset, 4, pages, stride_pages * static_cast<int64_t>(page_)}; }

  const uint64_t page_;
  TargetWindow window_;
};

TEST_F(MappedMemoryTest, AWindowThatIsAllThereIsAskedForOnce) {
  MappedMemory memory(window_);
  for (uint64_t column = 0; column < 100; ++column) EXPECT_TRUE(memory.Has(std::vector{Column(4 * column, kPages)}, kInts));
  for (uint64_t row = 0; row < kPages; ++row) EXPECT_TRUE(memory.Has(std::vector<Block>{{row * page_, 4, 100, 20}}, kInts));
  EXPECT_EQ(memory.looks(), 1u);
}

TEST_F(MappedMemoryTest, ABlockBesideAHoleIsAskedForOnce) {
  Unmap(5);
  MappedMemory memory(window_);
  EXPECT_TRUE(memory.Has(std::vector{Column(0, 5), Column(6 * page_, 500)}, kInts));
  EXPECT_EQ(memory.looks(), 3u);
}

TEST_F(MappedMemoryTest, APieceThatEndsInAPageThatIsNotThereIsFound) {
  Unmap(5);
  MappedMemory memory(window_);
  EXPECT_TRUE(memory.Has(std::vector<Block>{{5 * page_ - 4, 4, 1, 0}}, kInts));
  EXPECT_FALSE(memory.Has(std::vector<Block>{{5 * page_ - 4, 8, 1, 0}}, kInts));
  EXPECT_FALSE(memory.Has(std::vector<Block>{{6 * page_ - 4, 4, 1, 0}}, kInts));
  EXPECT_TRUE(memory.Has(std::vector<Block>{{6 * page_, 4, 1, 0}}, kInts));
}

TEST_F(MappedMemoryTest, AHoleBetweenPiecesIsNoHoleInThem) {
  Unmap(5);
  MappedMemory memory(window_);
  EXPECT_TRUE(memory.Has(std::vector{Column(0, 5), Column(6 * page_, 5)}, kInts));
  EXPECT_FALSE(memory.Has(std::vector{Column(0, 11)}, kInts));
  EXPECT_FALSE(memory.Has(std::vector{Column(10 * page_, 11, -1)}, kInts)) << "backwards";
  EXPECT_TRUE(memory.Has(std::vector{Column(10 * page_, 5, -1)}, kInts));
}

TEST_F(MappedMemoryTest, AHoleNextToWhatIsKnownIsFound) {
  Unmap(0, 3);
  Unmap(7, 3);
  MappedMemory memory(window_);
  EXPECT_TRUE(memory.Has(std::vector{Column(3 * page_, 4)}, kInts));
  EXPECT_FALSE(memory.Has(std::vector{Column(3 * page_, 5)}, kInts));
  EXPECT_FALSE(memory.Has(std::vector{Column(2 * page_, 4)}, kInts));
  EXPECT_TRUE(memory.Has(std::vector{Column(3 * page_, 4)}, kInts));
}

}  // namespace
}  // namespace weft::mpi::rma
