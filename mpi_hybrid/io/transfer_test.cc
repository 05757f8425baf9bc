#include "mpi_hybrid/io/transfer.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "mpi_hybrid/datatype/constructors.h"
#include "mpi_hybrid/io/representation.h"
#include "mpi_hybrid/io/testing/fake_disk.h"

namespace weft::mpi::io {
namespace {

const Datatype& Byte() { return *Datatype::Find(MPI_BYTE); }

Ref<View> ViewOf(int64_t displacement, const Ref<Datatype>& filetype) {
  Ref<View> view;
  const Error error = View::Make(displacement, Byte(), *filetype, *FindRepresentation("native"), true, &view);
  EXPECT_TRUE(error.ok()) << error.message();
  return view;
}

// `length` bytes of each `stride`.
Ref<View> Strided(int64_t displacement, int64_t length, int64_t stride) {
  return ViewOf(displacement, MakeResized(*MakeContiguous(length, Byte()), 0, stride));
}

std::vector<uint8_t> Counting(size_t bytes, uint8_t from = 1) {
  std::vector<uint8_t> data(bytes);
  std::iota(data.begin(), data.end(), from);
  return data;
}

Moved Write(RawFile& disk, const View& view, int64_t position, std::vector<uint8_t>& data) {
  RangeCursor ranges(view, position, static_cast<int64_t>(data.size()));
  TypeCursor memory(data.data(), static_cast<MPI_Aint>(data.size()), Byte());
  return WriteRanges(disk, ranges, memory);
}

Moved Read(RawFile& disk, const View& view, int64_t position, std::vector<uint8_t>& data, Sieving sieving = {}) {
  RangeCursor ranges(view, position, static_cast<int64_t>(data.size()));
  TypeCursor memory(data.data(), static_cast<MPI_Aint>(data.size()), Byte());
  return ReadRanges(disk, ranges, memory, sieving);
}

TEST(Transfer, WritesEachRangeWhereTheViewHasIt) {
  FakeDisk disk;
  const Ref<View> view = Strided(2, 2, 5);
  std::vector<uint8_t> data = Counting(5);
  EXPECT_EQ(Write(disk, *view, 1, data).bytes, 5);
  EXPECT_EQ(disk.bytes, (std::vector<uint8_t>{0, 0, 0, 1, 0, 0, 0, 2, 3, 0, 0, 0, 4, 5}));
  EXPECT_EQ(disk.calls, 3);
}

TEST(Transfer, MovesPiecesOfMemoryInOneCall) {
  FakeDisk disk;
  const Ref<View> whole = View::Initial();
  const Ref<Datatype> column = MakeVector(4, 1, 2, Byte());
  std::vector<uint8_t> data = Counting(8);
  RangeCursor ranges(*whole, 3, 4);
  TypeCursor memory(data.data(), 1, *column);
  EXPECT_EQ(WriteRanges(disk, ranges, memory).bytes, 4);
  EXPECT_EQ(disk.bytes, (std::vector<uint8_t>{0, 0, 0, 1, 3, 5, 7}));
  EXPECT_EQ(disk.calls, 1);
}

TEST(Transfer, ReadsUpToTheEndOfTheFile) {
  FakeDisk disk;
  disk.bytes = Counting(12);
  const Ref<View> view = Strided(0, 2, 5);
  for (const Sieving::When when : {Sieving::When::kNever, Sieving::When::kAlways}) {
    std::vector<uint8_t> data(8, 99);
    const Moved moved = Read(disk, *view, 0, data, {when, 4096});
    EXPECT_EQ(moved.error, 0);
    EXPECT_EQ(moved.bytes, 6);
    EXPECT_EQ(data, (std::vector<uint8_t>{1, 2, 6, 7, 11, 12, 99, 99}));
  }
}

TEST(Transfer, SievesWithOneCallWhereItPays) {
  FakeDisk disk;
  disk.bytes = Counting(100000);
  const Ref<View> near = Strided(0, 10, 100), far = Strided(0, 10, 20000);
  std::vector<uint8_t> data(50);
  EXPECT_EQ(Read(disk, *near, 0, data, {Sieving::When::kWhereItPays, 65536}).bytes, 50);
  EXPECT_EQ(disk.calls, 1);
  disk.calls = 0;
  EXPECT_EQ(Read(disk, *far, 0, data, {Sieving::When::kWhereItPays, 65536}).bytes, 50);
  EXPECT_EQ(disk.calls, 5);
  disk.calls = 0;
  EXPECT_EQ(Read(disk, *far, 0, data, {Sieving::When::kAlways, 65536}).bytes, 50);
  EXPECT_EQ(disk.calls, 2);
}

TEST(Transfer, SievedWritesKeepWhatLiesBetween) {
  FakeDisk disk;
  disk.bytes = Counting(20);
  const Ref<View> view = Strided(1, 2, 5);
  std::vector<uint8_t> data(10, 200);
  RangeCursor ranges(*view, 0, 10);
  TypeCursor memory(data.data(), 10, Byte());
  EXPECT_EQ(WriteRangesLocked(disk, ranges, memory, 4096).bytes, 10);
  EXPECT_EQ(disk.locks, 0);
  EXPECT_EQ(disk.calls, 3);  // a read that is short, one that finds the end, a write
  std::vector<uint8_t> expected = Counting(23);
  for (size_t i = 20; i < 23; ++i) expected[i] = 0;
  for (size_t i = 0; i < 10; ++i) expected[1 + i / 2 * 5 + i % 2] = 200;
  EXPECT_EQ(disk.bytes, expected);
}

TEST(Transfer, SaysHowFarItGotWhenTheDiskIsFull) {
  FakeDisk disk({.room = 7});
  std::vector<uint8_t> data = Counting(12);
  const Moved moved = Write(disk, *Strided(0, 2, 5), 0, data);
  EXPECT_EQ(moved.error, ENOSPC);
  EXPECT_EQ(moved.bytes, 4);
}

TEST(Transfer, SaysWhatCannotBeRead) {
  FakeDisk disk({.bad_block = 30});
  disk.bytes = Counting(100);
  std::vector<uint8_t> data(100);
  EXPECT_EQ(Read(disk, *View::Initial(), 0, data).error, EIO);
}

TEST(View, KnowsThePositionBehindEachByte) {
  // Two blocks of different lengths in a vector in a tile with a hole in front and behind.
  const std::array<MPI_Aint, 2> lengths = {3, 1}, displacements = {2, 9};
  const Ref<Datatype> blocks = MakeResized(*MakeStruct(lengths, displacements, std::array{Ref<const Datatype>(&Byte()), Ref<const Datatype>(&Byte())}), 0, 12);
  const Ref<Datatype> twice = MakeResized(*MakeContiguous(2, *blocks), 0, 30);
  const Ref<View> view = ViewOf(7, twice);
  std::vector<int64_t> offsets;
  for (int64_t position = 0; position < 40; ++position) offsets.push_back(view->OffsetOf(position));
  for (int64_t offset = 0; offset < 100; ++offset) {
    int64_t before = 0;
    while (offsets[static_cast<size_t>(before)] < offset) ++before;
    EXPECT_EQ(view->PositionBefore(offset), before) << offset;
  }
}

TEST(View, RefusesTypesThatAreNoFiletypes) {
  Ref<View> view;
  const Representation& native = *FindRepresentation("native");
  const Ref<Datatype> overlapping = MakeResized(*MakeContiguous(4, Byte()), 0, 2);
  const Ref<Datatype> backwards = MakeVector(2, 1, -4, Byte());
  const Ref<Datatype> nothing = MakeContiguous(0, Byte());
  EXPECT_FALSE(View::Make(0, Byte(), *overlapping, native, true, &view).ok());
  EXPECT_TRUE(View::Make(0, Byte(), *overlapping, native, false, &view).ok());
  EXPECT_FALSE(View::Make(0, Byte(), *backwards, native, false, &view).ok());
  EXPECT_FALSE(View::Make(0, *nothing, *nothing, native, false, &view).ok());
  EXPECT_FALSE(View::Make(-1, Byte(), Byte(), native, false, &view).ok());
  EXPECT_TRUE(View::Make(0, Byte(), *nothing, native, false, &view).ok());
  EXPECT_TRUE(view->empty());
}

// A random layout of ascending blocks, as a type.
Ref<Datatype> RandomType(std::mt19937& random) {
  const auto number = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  std::vector<MPI_Aint> lengths, displacements;
  MPI_Aint end = 0;
  for (int64_t blocks = number(1, 5); blocks > 0; --blocks) {
    displacements.push_back(end + number(0, 9));
    lengths.push_back(number(1, 9));
    end = displacements.back() + lengths.back();
  }
  const Ref<Datatype> once = MakeResized(*MakeIndexed(lengths, displacements, Byte()), 0, end + number(0, 5));
  return number(0, 1) == 0 ? once : MakeResized(*MakeVector(number(1, 4), 1, once->extent + number(0, 7), *once), 0, 5 * (once->extent + 7));
}

// What was written through a view is what a walk byte by byte would have written; reading gives it back, by each way.
TEST(Transfer, RandomTransfersAreAsByteByByteWhateverTheDiskDoes) {
  const char* runs = std::getenv("RANDOM_RUN_COUNT");
  for (unsigned seed = 1; seed <= (runs != nullptr ? std::strtoul(runs, nullptr, 10) : 300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto number = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
    FakeDisk disk({.seed = seed, .interrupted = 0.2, .shortened = 0.3});
    const Ref<View> view = ViewOf(number(0, 20), RandomType(random));
    const int64_t position = number(0, 50), bytes = number(1, 300);
    std::vector<uint8_t> data(static_cast<size_t>(bytes)), expected;
    for (uint8_t& byte : data) byte = static_cast<uint8_t>(number(1, 255));
    for (int64_t i = 0; i < bytes; ++i) {
      const auto at = static_cast<size_t>(view->OffsetOf(position + i));
      if (expected.size() <= at) expected.resize(at + 1);
      expected[at] = data[static_cast<size_t>(i)];
    }
    RangeCursor ranges(*view, position, bytes);
    TypeCursor memory(data.data(), bytes, Byte());
    const int64_t room = number(1, 200);
    const Moved written = number(0, 1) == 0 ? WriteRanges(disk, ranges, memory) : WriteRangesLocked(disk, ranges, memory, room);
    ASSERT_EQ(written.error, 0);
    ASSERT_EQ(written.bytes, bytes);
    ASSERT_EQ(disk.bytes, expected);
    for (const Sieving::When when : {Sieving::When::kNever, Sieving::When::kWhereItPays, Sieving::When::kAlways}) {
      std::vector<uint8_t> back(data.size());
      ASSERT_EQ(Read(disk, *view, position, back, {when, room}).bytes, bytes);
      ASSERT_EQ(back, data);
    }
  }
}

}  // namespace
}  // namespace weft::mpi::io
