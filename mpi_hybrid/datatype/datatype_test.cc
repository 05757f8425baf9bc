#include "mpi_hybrid/datatype/datatype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

#include "mpi_hybrid/core/handle.h"
#include "mpi_hybrid/datatype/constructors.h"
#include "mpi_hybrid/datatype/predefined.h"
#include "mpi_hybrid/datatype/signature.h"
#include "mpi_hybrid/datatype/testing/type_map.h"

namespace weft::mpi {
namespace {

using testing::ByteOffsets;
using testing::MakeRandomType;
using testing::RandomType;

const Datatype& Type(MPI_Datatype handle) { return *Datatype::Find(handle); }

// Each test draws so many types; WEFT_SEED in the environment replays one.
template <typename Check>
void ForRandomTypes(int types, Check check) {
  const char* given = std::getenv("WEFT_SEED");
  const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  for (int i = 0; i < (given != nullptr ? 1 : types); ++i) {
    std::mt19937_64 random(first + static_cast<uint64_t>(i));
    const RandomType made = MakeRandomType(random, 5);
    SCOPED_TRACE("WEFT_SEED=" + std::to_string(first + static_cast<uint64_t>(i)) + " " + made.text);
    ASSERT_TRUE(made.type);
    check(made, random);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Memory for elements of a type, every byte of it different from its neighbours, and what packing them has to give.
struct Memory {
  Memory(const RandomType& made, MPI_Aint count) : offsets(ByteOffsets(made.map, count)) {
    low = offsets.empty() ? 0 : *std::min_element(offsets.begin(), offsets.end());
    const MPI_Aint high = offsets.empty() ? 0 : *std::max_element(offsets.begin(), offsets.end()) + 1;
    bytes.resize(static_cast<size_t>(high - low));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 251);
    std::vector<MPI_Aint> sorted = offsets;
    std::sort(sorted.begin(), sorted.end());
    overlap = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    for (const MPI_Aint offset : offsets) packed.push_back(bytes[static_cast<size_t>(offset - low)]);
  }
  uint8_t* origin() {
    return reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(bytes.data()) - static_cast<uintptr_t>(low));
  }

  std::vector<MPI_Aint> offsets;
  MPI_Aint low;
  bool overlap;  // of entries
  std::vector<uint8_t> bytes, packed;
};

TEST(DatatypeTest, BoundsAndSizesAreThoseOfTheTypeMap) {
  ForRandomTypes(4000, [](const RandomType& made, std::mt19937_64&) {
    const Datatype& type = *made.type;
    const std::vector<MPI_Aint> offsets = ByteOffsets(made.map, 1);
    ASSERT_EQ(type.size, static_cast<MPI_Aint>(offsets.size()));
    ASSERT_EQ(type.lb, made.map.lb);
    ASSERT_EQ(type.extent, made.map.extent());
    if (offsets.empty()) {
      ASSERT_EQ(type.true_extent, 0);
      ASSERT_TRUE(type.layout.empty());
      return;
    }
    // Pair types end with padding in their true extent only where MPICH's do (none does behind the index).
    ASSERT_EQ(type.true_lb, *std::min_element(offsets.begin(), offsets.end()));
    ASSERT_EQ(type.true_lb + type.true_extent, *std::max_element(offsets.begin(), offsets.end()) + 1);
  });
}

TEST(DatatypeTest, DenseTypesAreOneBlockAndOthersAreNot) {
  ForRandomTypes(4000, [](const RandomType& made, std::mt19937_64&) {
    std::vector<MPI_Aint> all(static_cast<size_t>(made.type->size));
    std::iota(all.begin(), all.end(), 0);
    ASSERT_EQ(made.type->dense, ByteOffsets(made.map, 1) == all && made.map.extent() == made.type->size);
  });
}

TEST(DatatypeTest, MemorySpanIsTheBytesTouched) {
  ForRandomTypes(2000, [](const RandomType& made, std::mt19937_64& random) {
    const MPI_Aint count = static_cast<MPI_Aint>(random() % 4);
    const std::vector<MPI_Aint> offsets = ByteOffsets(made.map, count);
    MPI_Aint low, high;
    MemorySpan(count, *made.type, &low, &high);
    ASSERT_EQ(low, offsets.empty() ? 0 : *std::min_element(offsets.begin(), offsets.end()));
    ASSERT_EQ(high, offsets.empty() ? 0 : *std::max_element(offsets.begin(), offsets.end()) + 1);
  });
}

TEST(DatatypeTest, SignatureIsTheSequenceOfBasicTypes) {
  ForRandomTypes(2000, [](const RandomType& made, std::mt19937_64&) {
    std::vector<MPI_Datatype> expected, actual;
    for (int i = 0; i < 2; ++i) {
      for (const testing::Entry& entry : made.map.entries) expected.push_back(entry.basic);
    }
    for (SignatureCursor at(*made.type, 2); !at.done(); at.Advance(1)) actual.push_back(at.basic());
    ASSERT_EQ(actual, expected);
    const bool one_type = !expected.empty() && std::count(expected.begin(), expected.end(), expected[0]) == std::ssize(expected);
    ASSERT_EQ(made.type->OnlyBasic(), one_type ? expected[0] : MPI_DATATYPE_NULL);
  });
}

TEST(DatatypeTest, PackAndUnpackGiveTheBytesInOrder) {
  ForRandomTypes(3000, [](const RandomType& made, std::mt19937_64& random) {
    const MPI_Aint count = static_cast<MPI_Aint>(random() % 4);
    Memory memory(made, count);
    std::vector<uint8_t> packed(memory.packed.size());
    TypeCursor from(memory.origin(), count, *made.type);
    ASSERT_EQ(from.remaining(), std::ssize(packed));
    Pack(from, packed);
    ASSERT_EQ(packed, memory.packed);
    // Into other memory: the same bytes there, the rest untouched. Entries of what is written do not overlap (MPI 4.0
    // section 3.2.4).
    if (memory.overlap) return;
    const std::vector<uint8_t> before = memory.bytes;
    std::vector<uint8_t> expected(memory.bytes.size(), 0xee);
    for (size_t i = 0; i < packed.size(); ++i) expected[static_cast<size_t>(memory.offsets[i] - memory.low)] = packed[i];
    std::fill(memory.bytes.begin(), memory.bytes.end(), 0xee);
    TypeCursor to(memory.origin(), count, *made.type);
    Unpack(to, packed);
    ASSERT_EQ(memory.bytes, expected);
  });
}

TEST(DatatypeTest, CursorGoesOnFromEveryByte) {
  ForRandomTypes(200, [](const RandomType& made, std::mt19937_64& random) {
    const MPI_Aint count = 1 + static_cast<MPI_Aint>(random() % 3);
    Memory memory(made, count);
    if (memory.packed.size() > 600) return;  // the square of it in time
    std::vector<uint8_t> packed(memory.packed.size());
    for (size_t split = 0; split <= packed.size(); ++split) {
      std::fill(packed.begin(), packed.end(), 0);
      TypeCursor in_two(memory.origin(), count, *made.type);
      Pack(in_two, std::span(packed).first(split));
      ASSERT_EQ(in_two.position(), static_cast<MPI_Aint>(split));
      Pack(in_two, std::span(packed).subspan(split));
      ASSERT_EQ(packed, memory.packed) << "split at " << split;
      TypeCursor sought(memory.origin(), count, *made.type);
      sought.Seek(static_cast<MPI_Aint>(split));
      std::fill(packed.begin() + static_cast<std::ptrdiff_t>(split), packed.end(), 0);
      Pack(sought, std::span(packed).subspan(split));
      ASSERT_EQ(packed, memory.packed) << "sought to " << split;
      in_two.Seek(static_cast<MPI_Aint>(split / 2));  // back from the end
      std::fill(packed.begin() + static_cast<std::ptrdiff_t>(split / 2), packed.end(), 0);
      Pack(in_two, std::span(packed).subspan(split / 2));
      ASSERT_EQ(packed, memory.packed) << "back to " << split / 2;
    }
  });
}

TEST(DatatypeTest, PiecesHaveTheBytesInOrderWhateverTheLimits) {
  ForRandomTypes(1000, [](const RandomType& made, std::mt19937_64& random) {
    const MPI_Aint count = 1 + static_cast<MPI_Aint>(random() % 3);
    Memory memory(made, count);
    std::vector<uint8_t> gathered;
    TypeCursor cursor(memory.origin(), count, *made.type);
    MPI_Aint pieces = 0;
    while (cursor.remaining() > 0) {
      iovec list[5];
      const size_t room = 1 + random() % 5, limit = 1 + random() % 60;
      const size_t filled = cursor.Next(std::span(list).first(room), limit);
      ASSERT_GT(filled, 0u);
      const size_t before = gathered.size();
      for (size_t i = 0; i < filled; ++i) {
        const auto* bytes = static_cast<const uint8_t*>(list[i].iov_base);
        gathered.insert(gathered.end(), bytes, bytes + list[i].iov_len);
      }
      ASSERT_LE(gathered.size() - before, limit);
      ++pieces;
    }
    ASSERT_EQ(gathered, memory.packed);
    iovec all[1];
    TypeCursor whole(memory.origin(), 1, *made.type);
    MPI_Aint counted = 0;
    while (whole.Next(all, ~size_t{0}) > 0) ++counted;
    ASSERT_LE(counted, made.type->pieces);
  });
}

TEST(DatatypeTest, PackingInRandomPartsIsPackingInOne) {
  ForRandomTypes(2000, [](const RandomType& made, std::mt19937_64& random) {
    const MPI_Aint count = static_cast<MPI_Aint>(random() % 6);
    Memory memory(made, count);
    std::vector<uint8_t> packed(memory.packed.size());
    TypeCursor cursor(memory.origin(), count, *made.type);
    for (size_t at = 0; at < packed.size();) {
      const size_t part = std::min<size_t>(packed.size() - at, random() % 200);
      Pack(cursor, std::span(packed).subspan(at, part));
      at += part;
    }
    ASSERT_EQ(packed, memory.packed);
  });
}

TEST(DatatypeTest, CopyTypedIsPackingAndUnpacking) {
  ForRandomTypes(2000, [](const RandomType& made, std::mt19937_64& random) {
    const RandomType other = MakeRandomType(random, 4);
    const MPI_Aint from_count = static_cast<MPI_Aint>(random() % 5), to_count = static_cast<MPI_Aint>(random() % 5);
    Memory from(made, from_count), to(other, to_count);
    std::vector<uint8_t> expected = to.bytes;
    for (size_t i = 0; i < std::min(from.packed.size(), to.packed.size()); ++i) {
      expected[static_cast<size_t>(to.offsets[i] - to.low)] = from.packed[i];
    }
    if (to.overlap) return;
    const Error error = CopyTyped(from.origin(), from_count, *made.type, to.origin(), to_count, *other.type);
    ASSERT_EQ(to.bytes, expected);
    ASSERT_EQ(error.mpi_class(), from.packed.size() > to.packed.size() ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
  });
}

TEST(DatatypeTest, CountsBasicElementsOfParts) {
  ForRandomTypes(1000, [](const RandomType& made, std::mt19937_64&) {
    // After so many bytes of data a basic element ends.
    std::vector<MPI_Count> ends;
    MPI_Count bytes = 0;
    for (int i = 0; i < 2; ++i) {
      for (const testing::Entry& entry : made.map.entries) {
        const Basic& basic = *FindBasic(entry.basic);
        if (basic.kind == BasicKind::kPair) ends.push_back(bytes + FindBasic(basic.first)->size);
        ends.push_back(bytes += basic.size);
      }
    }
    ASSERT_EQ(CountBasics(*made.type) * 2, std::ssize(ends));
    if (bytes > 1000) return;
    for (MPI_Count n = 0; n <= bytes; ++n) {
      const auto end = n == 0 ? ends.begin() : std::find(ends.begin(), ends.end(), n);
      const MPI_Count expected = n == 0 ? 0 : end == ends.end() ? MPI_UNDEFINED : end - ends.begin() + 1;
      ASSERT_EQ(BasicsIn(n, *made.type), expected) << n;
    }
    for (size_t n = 0; n < ends.size(); ++n) ASSERT_EQ(BytesOfBasics(static_cast<MPI_Count>(n) + 1, *made.type), ends[n]);
    ASSERT_EQ(BytesOfBasics(0, *made.type), 0);
  });
}

TEST(DatatypeTest, SignaturesMatchWhenOneBeginsTheOther) {
  const Datatype &i = Type(MPI_INT), &d = Type(MPI_DOUBLE);
  const MPI_Aint ones[] = {1, 1}, at[] = {0, 8};
  const Ref<const Datatype> fields[] = {Ref<const Datatype>(&i), Ref<const Datatype>(&d)};
  const Ref<Datatype> both = MakeStruct(ones, at, fields);
  const Ref<Datatype> ten = MakeContiguous(10, *both);
  EXPECT_TRUE(SignaturesMatch(*both, 10, *ten, 1));
  EXPECT_TRUE(SignaturesMatch(*ten, 1, *both, 3));
  EXPECT_TRUE(SignaturesMatch(i, 1, *both, 1));
  EXPECT_FALSE(SignaturesMatch(i, 2, *both, 1));
  EXPECT_FALSE(SignaturesMatch(i, 1, d, 1));
  EXPECT_TRUE(SignaturesMatch(i, 5, Type(MPI_INTEGER), 3));
  EXPECT_FALSE(SignaturesMatch(i, 5, Type(MPI_FLOAT), 5));
  EXPECT_TRUE(SignaturesMatch(Type(MPI_PACKED), 5, *ten, 5));
}

TEST(DatatypeTest, PredefinedTypesHaveTheHandlesOfTheHeader) {
  for (const Basic& basic : AllBasics()) {
    Datatype* type = Datatype::FindWithMarkers(basic.handle);
    ASSERT_NE(type, nullptr) << basic.name;
    EXPECT_EQ(type->handle, basic.handle);
    EXPECT_TRUE(type->builtin);
    if (IsBuiltin(basic.handle)) {
      EXPECT_EQ(type->size, (basic.handle >> 8) & 0xff) << basic.name;
    }
  }
  EXPECT_EQ(Datatype::Find(MPI_LB), nullptr);
  EXPECT_EQ(Datatype::Find(MPI_DATATYPE_NULL), nullptr);
  EXPECT_EQ(Datatype::Find(static_cast<MPI_Datatype>(0x4c000812)), nullptr);
  EXPECT_EQ(Datatype::Find(static_cast<MPI_Datatype>(0x4c00080c)), nullptr);
  EXPECT_EQ(Datatype::Find(static_cast<MPI_Datatype>(0x8c000005)), nullptr);
  EXPECT_EQ(Type(MPI_SHORT_INT).size, 6);
  EXPECT_EQ(Type(MPI_SHORT_INT).extent, 8);
  EXPECT_EQ(Type(MPI_LONG_DOUBLE_INT).extent, 32);
  EXPECT_EQ(Type(MPI_LONG_DOUBLE_INT).true_extent, 20);
}

TEST(DatatypeTest, HandleIsVoidWhenTheProgramGaveItsLastReferenceBack) {
  Ref<Datatype> type = MakeContiguous(3, Type(MPI_INT));
  const MPI_Datatype handle = Datatype::Give(*type);
  EXPECT_EQ(Datatype::Give(*type), handle);
  Datatype::TakeBack(*type);
  EXPECT_EQ(Datatype::Find(handle), type.get());
  Datatype::TakeBack(*type);
  EXPECT_EQ(Datatype::Find(handle), nullptr);
  EXPECT_EQ(type->size, 12);                        // an operation may still use it
  EXPECT_EQ(Datatype::Give(*type), handle);         // MPI_Type_get_contents of a type made from it
  Datatype::TakeBack(*type);
  type = nullptr;
  const Ref<Datatype> next = MakeContiguous(4, Type(MPI_INT));
  EXPECT_EQ(Datatype::Give(*next), handle);
  Datatype::TakeBack(*next);
}

TEST(DatatypeTest, RegularTypesStayShort) {
  const Datatype& d = Type(MPI_DOUBLE);
  EXPECT_EQ(MakeVector(1000, 1, 24, d)->layout.size(), 1u);
  EXPECT_EQ(MakeContiguous(1000, *MakeVector(1, 2, 24, d))->layout.size(), 1u);
  std::vector<MPI_Aint> every_other;
  for (MPI_Aint i = 0; i < 1000; ++i) every_other.push_back(16 * i);
  EXPECT_EQ(MakeIndexedBlock(1, every_other, d)->layout.size(), 1u);
  std::vector<MPI_Aint> pairs;
  for (MPI_Aint i = 0; i < 1000; ++i)
    pairs.push_back(16 * i + 8 * (i % 2));  // 0, 24, 32, 56, 64 ...: but for the ends blocks of two
  EXPECT_EQ(MakeIndexedBlock(1, pairs, d)->layout.size(), 3u);
  const MPI_Aint sizes[] = {100, 100, 100}, part[] = {50, 50, 50}, start[] = {10, 10, 10};
  EXPECT_EQ(MakeSubarray(sizes, part, start, MPI_ORDER_C, d)->layout.size(), 2u);
  const MPI_Aint ones[] = {1, 1}, at[] = {0, 8};
  const Ref<const Datatype> fields[] = {Ref<const Datatype>(&Type(MPI_INT)), Ref<const Datatype>(&d)};
  const Ref<Datatype> million = MakeContiguous(1000000, *MakeStruct(ones, at, fields));
  EXPECT_EQ(million->layout.size(), 3u);
  EXPECT_EQ(million->signature.size(), 3u);
  EXPECT_EQ(million->size, 12000000);
}

TEST(DatatypeTest, LoopsAreUnrolledBeyondTheGreatestDepth) {
  Ref<Datatype> type = MakeContiguous(1, Type(MPI_CHAR));
  for (int level = 0; level < 12; ++level) type = MakeVector(2, 1, 3 * (1 << level) + level + 1, *type);
  EXPECT_EQ(type->size, 4096);
  std::vector<uint8_t> memory(static_cast<size_t>(type->true_extent)), packed(4096), expected;
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(i * 13 + i / 256);
  for (unsigned index = 0; index < 4096; ++index) {  // bit n of the index: which of the two of level n
    size_t at = 0;
    for (int level = 0; level < 12; ++level) at += index >> level & 1 ? static_cast<size_t>(3 * (1 << level) + level + 1) : 0;
    expected.push_back(memory[at]);
  }
  TypeCursor cursor(memory.data(), 1, *type);
  for (size_t at = 0; at < packed.size(); at += 64) Pack(cursor, std::span(packed).subspan(at, 64));
  EXPECT_EQ(packed, expected);
}

TEST(DatatypeTest, OverflowMakesNoType) {
  constexpr MPI_Aint kHuge = MPI_Aint{1} << 61;
  const Datatype& d = Type(MPI_DOUBLE);
  EXPECT_FALSE(MakeContiguous(kHuge, d));
  EXPECT_FALSE(MakeVector(3, 1, kHuge * 2, d));
  EXPECT_FALSE(MakeVector(3, kHuge, 8, d));
  const MPI_Aint lengths[] = {1, 1}, far[] = {-3 * kHuge, 3 * kHuge};
  EXPECT_FALSE(MakeIndexed(lengths, far, d));
  const MPI_Aint sizes[] = {kHuge, 4}, part[] = {1, 1}, start[] = {0, 0};
  EXPECT_FALSE(MakeSubarray(sizes, part, start, MPI_ORDER_C, d));
  EXPECT_TRUE(MakeContiguous(MPI_Aint{1} << 40, d));
}

TEST(DatatypeTest, MarkersOfStructuresSetTheBounds) {
  const MPI_Aint ones[] = {1, 1, 1}, at[] = {-3, 0, 6};
  const Ref<const Datatype> fields[] = {Ref<const Datatype>(Datatype::FindWithMarkers(MPI_LB)),
                                        Ref<const Datatype>(&Type(MPI_INT)),
                                        Ref<const Datatype>(Datatype::FindWithMarkers(MPI_UB))};
  const Ref<Datatype> type = MakeStruct(ones, at, fields);
  EXPECT_EQ(type->lb, -3);
  EXPECT_EQ(type->extent, 9);
  EXPECT_EQ(type->true_lb, 0);
  EXPECT_EQ(MakeContiguous(2, *type)->extent, 18);
  EXPECT_EQ(MakeContiguous(2, *type)->true_extent, 13);
}

TEST(DatatypeTest, FortranTypesAreTheSameForTheSameArguments) {
  EXPECT_EQ(F90Real(6, 30)->OnlyBasic(), MPI_REAL4);
  EXPECT_EQ(F90Real(6, 30), F90Real(6, 30));
  EXPECT_NE(F90Real(6, 30), F90Real(5, 30));
  EXPECT_EQ(F90Real(7, 30)->OnlyBasic(), MPI_REAL8);
  EXPECT_EQ(F90Real(6, 38)->OnlyBasic(), MPI_REAL8);
  EXPECT_EQ(F90Real(MPI_UNDEFINED, 308)->OnlyBasic(), MPI_LONG_DOUBLE);
  EXPECT_EQ(F90Real(33, MPI_UNDEFINED)->OnlyBasic(), MPI_REAL16);
  EXPECT_EQ(F90Real(34, 10), nullptr);
  EXPECT_EQ(F90Complex(15, 307)->OnlyBasic(), MPI_COMPLEX16);
  EXPECT_EQ(F90Integer(9)->OnlyBasic(), MPI_INTEGER4);
  EXPECT_EQ(F90Integer(10)->OnlyBasic(), MPI_INTEGER8);
  EXPECT_EQ(F90Integer(19), nullptr);
  EXPECT_TRUE(F90Real(6, 30)->builtin);
  EXPECT_EQ(Datatype::Find(F90Real(6, 30)->handle), F90Real(6, 30));
}

}  // namespace
}  // namespace weft::mpi
