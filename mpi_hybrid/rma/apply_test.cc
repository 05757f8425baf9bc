#include "mpi_hybrid/rma/apply.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "mpi_hybrid/rma/blocks.h"

namespace weft::mpi::rma {
namespace {

// A window of 64 ints, from 0 to 63.
class ApplyTest : public testing::Test {
 protected:
  ApplyTest() {
    for (size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<int>(i);
    window_.base = reinterpret_cast<uint8_t*>(memory_.data());
    window_.size = memory_.size() * sizeof(int);
  }

  Applied Apply(MessageKind kind, MPI_Op op, const std::vector<Block>& blocks, const std::vector<int>& data,
                bool with_data = true, MPI_Datatype basic = MPI_INT) {
    std::vector<uint8_t> body(kSlotBytes);
    const auto bytes = static_cast<uint32_t>(data.size() * sizeof(int));
    size_t length = WriteDataHeader({.op = op, .basic = basic, .bytes = bytes}, blocks, body);
    if (with_data) {
      std::memcpy(body.data() + length, data.data(), bytes);
      length += bytes;
    }
    MessageHeader header{kind, wants_reply_, 0, 1};
    size_t fetched = 0;
    fetched_.resize(DataRoom(1) / sizeof(int));
    const Applied applied =
        ApplyData(header, {body.data(), length}, window_, reinterpret_cast<uint8_t*>(fetched_.data()), &fetched);
    fetched_.resize(fetched / sizeof(int));
    return applied;
  }

  std::vector<int> memory_ = std::vector<int>(64);
  TargetWindow window_;
  bool wants_reply_ = true;
  std::vector<int> fetched_;
};

TEST_F(ApplyTest, PutsBlocks) {
  EXPECT_EQ(Apply(MessageKind::kPut, 0, {{0, 4, 2, 8}, {40, 8, 1, 0}}, {-1, -2, -3, -4}), Applied::kDone);
  EXPECT_EQ(memory_[0], -1);
  EXPECT_EQ(memory_[1], 1);
  EXPECT_EQ(memory_[2], -2);
  EXPECT_EQ(memory_[10], -3);
  EXPECT_EQ(memory_[11], -4);
  EXPECT_TRUE(fetched_.empty());
}

TEST_F(ApplyTest, ADataMessageMaySpanRegionsThatLieNextToOneAnother) {
  auto* const base = reinterpret_cast<uint8_t*>(memory_.data());
  const auto at = [&](int index) { return reinterpret_cast<uint64_t>(&memory_[static_cast<size_t>(index)]); };
  window_.dynamic = true;
  window_.regions = {{base + 40, 40, nullptr}, {base + 100, 20, nullptr}, {base, 40, nullptr}, {base + 80, 8, nullptr}};
  EXPECT_EQ(Apply(MessageKind::kPut, 0, {{at(8), 16, 1, 0}}, {-8, -9, -10, -11}), Applied::kDone);
  EXPECT_EQ(memory_[9], -9);
  EXPECT_EQ(memory_[10], -10);
  EXPECT_EQ(Apply(MessageKind::kGet, 0, {{at(0), 88, 1, 0}}, std::vector<int>(22), false), Applied::kDone);
  EXPECT_EQ(fetched_.size(), 22u);
  // From byte 88 to 100 nothing is attached, nor behind 120.
  EXPECT_EQ(Apply(MessageKind::kPut, 0, {{at(21), 8, 1, 0}}, {1, 2}), Applied::kOutOfRange);
  EXPECT_EQ(Apply(MessageKind::kPut, 0, {{at(21), 20, 1, 0}}, {1, 2, 3, 4, 5}), Applied::kOutOfRange);
  EXPECT_EQ(Apply(MessageKind::kPut, 0, {{at(29), 8, 1, 0}}, {1, 2}), Applied::kOutOfRange);
  EXPECT_EQ(memory_[21], 21);
}

TEST_F(ApplyTest, GetsBlocks) {
  EXPECT_EQ(Apply(MessageKind::kGet, 0, {{12, 4, 2, -8}}, {0, 0}, false), Applied::kDone);
  EXPECT_EQ(fetched_, std::vector<int>({3, 1}));
}

TEST_F(ApplyTest, FetchesWhatWasThereBefore) {
  EXPECT_EQ(Apply(MessageKind::kGetAccumulate, MPI_SUM, {{20, 8, 1, 0}}, {100, 200}), Applied::kDone);
  EXPECT_EQ(fetched_, std::vector<int>({5, 6}));
  EXPECT_EQ(memory_[5], 105);
  EXPECT_EQ(memory_[6], 206);
  EXPECT_EQ(Apply(MessageKind::kGetAccumulate, MPI_NO_OP, {{20, 8, 1, 0}}, {0, 0}, false), Applied::kDone);
  EXPECT_EQ(fetched_, std::vector<int>({105, 206}));
}

TEST_F(ApplyTest, OneByteTooFarIsMalformedAndChangesNothing) {
  const std::vector<int> before = memory_;
  EXPECT_EQ(Apply(MessageKind::kPut, 0, {{0, 4, 1, 0}, {63 * 4 + 1, 4, 1, 0}}, {-1, -2}), Applied::kMalformed);
  EXPECT_EQ(Apply(MessageKind::kPut, 0, {{0, 4, 65, 4}}, std::vector<int>(65)), Applied::kMalformed);
  EXPECT_EQ(Apply(MessageKind::kAccumulate, MPI_SUM, {{uint64_t{1} << 40, 4, 1, 0}}, {1}), Applied::kMalformed);
  EXPECT_EQ(memory_, before);
}

TEST_F(ApplyTest, PartsOfElementsAndUndefinedOperationsAreMalformed) {
  EXPECT_EQ(Apply(MessageKind::kAccumulate, MPI_SUM, {{0, 2, 2, 2}}, {1}), Applied::kMalformed);
  EXPECT_EQ(Apply(MessageKind::kAccumulate, MPI_BAND, {{0, 4, 1, 0}}, {1}, true, MPI_FLOAT), Applied::kMalformed);
  EXPECT_EQ(Apply(MessageKind::kAccumulate, 0x12345, {{0, 4, 1, 0}}, {1}), Applied::kMalformed);
  EXPECT_EQ(Apply(MessageKind::kAccumulate, MPI_SUM, {{0, 4, 1, 0}}, {1}, true, MPI_DATATYPE_NULL), Applied::kMalformed);
  wants_reply_ = false;
  EXPECT_EQ(Apply(MessageKind::kGet, 0, {{0, 4, 1, 0}}, {1}, false), Applied::kMalformed);
}

TEST_F(ApplyTest, DynamicWindowsSayWhatIsNotAttached) {
  TargetWindow::Region region{window_.base, 40, nullptr};
  window_.dynamic = true;
  window_.regions.push_back(region);
  const uint64_t address = reinterpret_cast<uintptr_t>(window_.base);
  EXPECT_EQ(Apply(MessageKind::kPut, 0, {{address + 36, 4, 1, 0}}, {7}), Applied::kDone);
  EXPECT_EQ(Apply(MessageKind::kPut, 0, {{address + 40, 4, 1, 0}}, {7}), Applied::kOutOfRange);
  EXPECT_EQ(memory_[9], 7);
  EXPECT_EQ(memory_[10], 10);
}

TEST_F(ApplyTest, SwapsWhenEqual) {
  const auto swap = [&](int compare, int origin) {
    uint8_t body[64];
    const size_t length = WriteCompareAndSwap(
        {8, MPI_INT, {reinterpret_cast<uint8_t*>(&origin), 4}, {reinterpret_cast<uint8_t*>(&compare), 4}}, body);
    int fetched = -1;
    size_t bytes = 0;
    EXPECT_EQ(ApplyCompareAndSwap({MessageKind::kCompareAndSwap, true, 0, 1}, {body, length}, window_,
                                  reinterpret_cast<uint8_t*>(&fetched), &bytes),
              Applied::kDone);
    EXPECT_EQ(bytes, sizeof fetched);
    return fetched;
  };
  EXPECT_EQ(swap(3, 50), 2);
  EXPECT_EQ(memory_[2], 2);
  EXPECT_EQ(swap(2, 50), 2);
  EXPECT_EQ(memory_[2], 50);
}

// Blocks of an origin's walk, put together by the target, are what a copy between types does.
TEST_F(ApplyTest, TypesTravelAsBlocks) {
  const Datatype& integer = *Datatype::Find(MPI_INT);
  const MPI_Aint lengths[] = {1, 3, 2, 1}, displacements[] = {0, 12, 40, 100};
  const Ref<Datatype> vector = MakeVector(7, 2, 12, integer);
  const Ref<Datatype> types[] = {vector, MakeResized(*vector, 0, 100), MakeContiguous(20, integer)};
  const Ref<const Datatype> parts[] = {Ref<const Datatype>(&integer), Ref<const Datatype>(&integer),
                                       Ref<const Datatype>(&integer), Ref<const Datatype>(&integer)};
  std::vector<Ref<Datatype>> all(types, types + 3);
  all.push_back(MakeStruct(lengths, displacements, parts));
  ElementType element;
  ASSERT_TRUE(FindElementType(MPI_INT, &element));
  for (const auto& type : all) {
    for (MPI_Aint count : {1, 2}) {
      const auto ints = static_cast<size_t>(count * type->size) / sizeof(int);
      std::vector<int> data(ints), expected = memory_;
      for (size_t i = 0; i < ints; ++i) data[i] = 1000 + static_cast<int>(i);
      ASSERT_TRUE(CopyTyped(data.data(), static_cast<MPI_Aint>(ints), integer, expected.data(), count, *type).ok());
      BlockSource source(0, count, *type, element, count * type->size);
      size_t at = 0;
      while (!source.done()) {
        const auto part = source.Next();
        ASSERT_GT(part.bytes, 0u);
        const std::vector<int> some(data.begin() + static_cast<ptrdiff_t>(at),
                                    data.begin() + static_cast<ptrdiff_t>(at + part.bytes / 4));
        ASSERT_EQ(Apply(MessageKind::kPut, 0, {part.blocks.begin(), part.blocks.end()}, some), Applied::kDone);
        at += part.bytes / 4;
      }
      EXPECT_EQ(at, ints);
      EXPECT_EQ(memory_, expected);
    }
  }
}

// Blocks of short pieces are worked on together: as one piece after the other.
TEST_F(ApplyTest, ManyPiecesOfABlockAreWhatEachIs) {
  constexpr int kMany = 1500;  // more than are gathered at a time
  std::vector<int> memory(3 * kMany);
  window_.base = reinterpret_cast<uint8_t*>(memory.data());
  window_.size = memory.size() * sizeof(int);
  for (const uint32_t ints : {1u, 2u, 3u}) {
    const uint32_t count = kMany / ints;
    const auto stride = static_cast<int64_t>(ints + 1) * 4;
    const Block up{0, ints * 4, count, stride}, down{static_cast<uint64_t>(stride) * (count - 1), ints * 4, count, -stride};
    for (const Block& block : {up, down}) {
      std::vector<int> data(ints * count), expected = memory;
      for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int>(i) + 7;
      const auto each = [&](auto change) {
        for (uint32_t i = 0; i < data.size(); ++i) change(expected[(block.offset + i / ints * static_cast<uint64_t>(block.stride)) / 4 + i % ints], data[i]);
      };
      ASSERT_EQ(Apply(MessageKind::kPut, 0, {block}, data), Applied::kDone);
      each([](int& to, int from) { to = from; });
      EXPECT_EQ(memory, expected);
      ASSERT_EQ(Apply(MessageKind::kAccumulate, MPI_SUM, {block}, data), Applied::kDone);
      each([](int& to, int from) { to += from; });
      EXPECT_EQ(memory, expected);
    }
    Block too_far = up;
    too_far.count = static_cast<uint32_t>(memory.size() / (ints + 1)) + 1;
    EXPECT_EQ(Apply(MessageKind::kPut, 0, {too_far}, std::vector<int>(too_far.count * ints)), Applied::kMalformed);
    too_far = down;
    too_far.count += 1;
    EXPECT_EQ(Apply(MessageKind::kPut, 0, {too_far}, std::vector<int>(too_far.count * ints)), Applied::kMalformed);
  }
}

TEST(BlockSourceTest, LongWalksAreCutIntoMessages) {
  const Datatype& byte = *Datatype::Find(MPI_BYTE);
  std::vector<MPI_Aint> lengths, displacements;
  std::vector<Ref<const Datatype>> types;
  MPI_Aint at = 0;
  for (int i = 0; i < 1000; ++i) {  // no two distances alike
    lengths.push_back(1 + i % 3);
    displacements.push_back(at);
    types.push_back(Ref<const Datatype>(&byte));
    at += 10 + i;
  }
  const Ref<Datatype> type = MakeStruct(lengths, displacements, types);
  BlockSource source(0, 1, *type, {MPI_BYTE, 1, 1, 1, 0, 0}, type->size);
  size_t bytes = 0;
  int messages = 0;
  for (; !source.done(); ++messages) {
    const auto part = source.Next();
    ASSERT_LE(part.blocks.size(), kMaxBlocks);
    ASSERT_LE(part.bytes, DataRoom(part.blocks.size()));
    ASSERT_GT(part.bytes, 0u);
    bytes += part.bytes;
  }
  EXPECT_EQ(bytes, static_cast<size_t>(type->size));
  EXPECT_GE(messages, 1000 / 128);
}

}  // namespace
}  // namespace weft::mpi::rma
