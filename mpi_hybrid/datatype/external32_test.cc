#include "mpi_hybrid/datatype/external32.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "mpi_hybrid/datatype/constructors.h"
#include "mpi_hybrid/datatype/floats.h"
#include "mpi_hybrid/datatype/predefined.h"
#include "mpi_hybrid/datatype/testing/type_map.h"

namespace weft::mpi {
namespace {

using Bytes = std::vector<uint8_t>;

const Datatype& Type(MPI_Datatype handle) { return *Datatype::Find(handle); }

template <typename T>
Bytes External(T value, MPI_Datatype type) {
  Bytes bytes(static_cast<size_t>(ExternalSize(1, Type(type))));
  PackExternal(&value, 1, Type(type), bytes.data());
  return bytes;
}
template <typename T>
T Native(const Bytes& bytes, MPI_Datatype type) {
  T value;
  std::memset(&value, 0x5a, sizeof value);
  UnpackExternal(bytes.data(), &value, 1, Type(type));
  return value;
}

TEST(External32Test, IntegersAreBigEndian) {
  EXPECT_EQ(External<int>(-2, MPI_INT), (Bytes{0xff, 0xff, 0xff, 0xfe}));
  EXPECT_EQ(External<short>(0x1234, MPI_SHORT), (Bytes{0x12, 0x34}));
  EXPECT_EQ(External<long long>(0x0102030405060708, MPI_LONG_LONG), (Bytes{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(External<char>('x', MPI_CHAR), (Bytes{'x'}));
  EXPECT_EQ(Native<int>({0xff, 0xff, 0xff, 0xfe}, MPI_INT), -2);
}

TEST(External32Test, LongHasFourBytesAndKeepsItsSign) {
  EXPECT_EQ(External<long>(-5, MPI_LONG), (Bytes{0xff, 0xff, 0xff, 0xfb}));
  EXPECT_EQ(Native<long>({0xff, 0xff, 0xff, 0xfb}, MPI_LONG), -5);
  EXPECT_EQ(Native<unsigned long>({0xff, 0xff, 0xff, 0xfb}, MPI_UNSIGNED_LONG), 0xfffffffbu);
  EXPECT_EQ(External<wchar_t>(L'\u20ac', MPI_WCHAR), (Bytes{0x20, 0xac}));
  EXPECT_EQ(Native<wchar_t>({0x20, 0xac}, MPI_WCHAR), L'\u20ac');
  EXPECT_EQ(External<MPI_Aint>(1, MPI_AINT).size(), 8u);
}

TEST(External32Test, FloatsAreIeee) {
  EXPECT_EQ(External<float>(1.5f, MPI_FLOAT), (Bytes{0x3f, 0xc0, 0, 0}));
  EXPECT_EQ(External<double>(-2.0, MPI_DOUBLE), (Bytes{0xc0, 0, 0, 0, 0, 0, 0, 0}));
  Bytes quad(16);
  quad[0] = 0x3f, quad[1] = 0xff, quad[2] = 0x80;
  EXPECT_EQ(External<long double>(1.5L, MPI_LONG_DOUBLE), quad);
  EXPECT_EQ(External<Quad>(1.5, MPI_REAL16), quad);
  EXPECT_EQ(Native<long double>(quad, MPI_LONG_DOUBLE), 1.5L);
  const long double third = 1.0L / 3;
  EXPECT_EQ(Native<long double>(External(third, MPI_LONG_DOUBLE), MPI_LONG_DOUBLE), third);
}

TEST(External32Test, ComplexNumbersAreTwoFloats) {
  const float value[2] = {1.5f, -1.5f};
  Bytes bytes(8);
  PackExternal(value, 1, Type(MPI_C_FLOAT_COMPLEX), bytes.data());
  EXPECT_EQ(bytes, (Bytes{0x3f, 0xc0, 0, 0, 0xbf, 0xc0, 0, 0}));
}

TEST(External32Test, LogicalsAreTrueIfAnyByteIs) {
  EXPECT_EQ(External<int>(1, MPI_LOGICAL), (Bytes{0, 0, 0, 1}));
  EXPECT_EQ(External<int>(0x100, MPI_LOGICAL), (Bytes{0, 0, 0, 1}));
  EXPECT_EQ(External<bool>(true, MPI_C_BOOL), (Bytes{1}));
  EXPECT_EQ(Native<int>({1, 0, 0, 0}, MPI_LOGICAL), 1);
  EXPECT_EQ(Native<int>({0, 0, 0, 0}, MPI_LOGICAL), 0);
}

TEST(External32Test, PairsHaveNoPadding) {
  struct {
    short value;
    int index;
  } pair = {0x0102, 0x03040506};
  Bytes bytes(6);
  EXPECT_EQ(ExternalSize(1, Type(MPI_SHORT_INT)), 6);
  PackExternal(&pair, 1, Type(MPI_SHORT_INT), bytes.data());
  EXPECT_EQ(bytes, (Bytes{1, 2, 3, 4, 5, 6}));
}

// Any bytes are a value of these.
bool AllBytesAreValues(const testing::RandomType& made) {
  for (const testing::Entry& entry : made.map.entries) {
    const Basic& basic = *FindBasic(entry.basic);
    if (basic.external != basic.size || basic.handle == MPI_LONG_DOUBLE || basic.handle == MPI_LONG_INT ||
        basic.handle == MPI_LONG_DOUBLE_INT) {
      return false;
    }
  }
  return true;
}

TEST(External32Test, RandomTypesComeBackAsTheyWere) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  int tested = 0;
  while (tested < 300) {
    const testing::RandomType made = testing::MakeRandomType(random, 4);
    if (!AllBytesAreValues(made)) continue;
    ++tested;
    MPI_Aint low, high;
    MemorySpan(3, *made.type, &low, &high);
    Bytes memory(static_cast<size_t>(high - low)), copy(memory.size());
    for (uint8_t& byte : memory) byte = static_cast<uint8_t>(random());
    const auto at = [&](Bytes& bytes) {
      return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(bytes.data()) - static_cast<uintptr_t>(low));
    };
    Bytes external(static_cast<size_t>(ExternalSize(3, *made.type)));
    ASSERT_EQ(std::ssize(external), 3 * made.type->size);
    PackExternal(at(memory), 3, *made.type, external.data());
    UnpackExternal(external.data(), at(copy), 3, *made.type);
    Bytes expected(static_cast<size_t>(3 * made.type->size)), actual(expected.size());
    TypeCursor from(at(memory), 3, *made.type), to(at(copy), 3, *made.type);
    Pack(from, expected);
    Pack(to, actual);
    ASSERT_EQ(actual, expected) << made.text;
  }
}

TEST(External32Test, WordsAreConvertedWhereTheyAre) {
  for (const MPI_Datatype type : {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE, MPI_C_DOUBLE_COMPLEX, MPI_REAL16}) {
    ASSERT_TRUE(FitsInPlace(Type(type)));
    const auto size = static_cast<size_t>(3 * Type(type).size);
    Bytes native(size), external(size);
    for (size_t i = 0; i < size; ++i) native[i] = static_cast<uint8_t>(i + 1);
    PackExternal(native.data(), 3, Type(type), external.data());
    EXPECT_EQ(IsSameInExternal(Type(type)), native == external);
    Bytes both = native;
    PackExternal(both.data(), 3, Type(type), both.data());
    EXPECT_EQ(both, external);
    UnpackExternal(both.data(), both.data(), 3, Type(type));
    EXPECT_EQ(both, native);
  }
  for (const MPI_Datatype type : {MPI_LONG, MPI_LONG_DOUBLE, MPI_SHORT_INT, MPI_LOGICAL}) EXPECT_FALSE(FitsInPlace(Type(type)));
  const Ref<Datatype> with_gaps = MakeVector(2, 1, 2 * 4, Type(MPI_INT));
  EXPECT_FALSE(FitsInPlace(*with_gaps));
}

TEST(External32Test, EachElementIsConvertedByItsOwnType) {
  const MPI_Aint ones[] = {1, 1, 1}, at[] = {0, 8, 16};
  const Ref<const Datatype> fields[] = {Ref<const Datatype>(&Type(MPI_CHAR)), Ref<const Datatype>(&Type(MPI_LONG)),
                                        Ref<const Datatype>(&Type(MPI_SHORT))};
  const Ref<Datatype> type = MakeStruct(ones, at, fields);
  struct Native {
    char c;
    long l;
    short s;
  } values[2] = {{'a', 1, 2}, {'b', -1, 3}};
  Bytes bytes(static_cast<size_t>(ExternalSize(2, *type)));
  PackExternal(values, 2, *type, bytes.data());
  EXPECT_EQ(bytes, (Bytes{'a', 0, 0, 0, 1, 0, 2, 'b', 0xff, 0xff, 0xff, 0xff, 0, 3}));
}

// Many elements, in one piece of memory and with gaps, each whole one of what there is of them.
TEST(External32Test, ManyElementsComeBackAsFarAsTheyAreThere) {
  constexpr int kCount = 3001;
  const Ref<Datatype> gapped = MakeResized(Type(MPI_INT), 0, 8), row = MakeContiguous(kCount, Type(MPI_INT));
  const struct {
    const Datatype* type;
    MPI_Count count;
    size_t stride;
  } cases[] = {{&Type(MPI_INT), kCount, 1}, {&*row, 1, 1}, {&*gapped, kCount, 2}};
  for (const auto& [type, count, stride] : cases) {
    std::vector<int> values(kCount * stride), back(values.size(), -1);
    for (size_t i = 0; i < kCount; ++i) values[i * stride] = static_cast<int>(i * 0x01010101);
    Bytes external(static_cast<size_t>(ExternalSize(count, *type)));
    ASSERT_EQ(external.size(), kCount * 4u);
    PackExternal(values.data(), count, *type, external.data());
    EXPECT_EQ((Bytes{external.begin() + 1200, external.begin() + 1204}), External(values[300 * stride], MPI_INT));
    EXPECT_EQ(UnpackExternalBytes(std::span(external).first(4 * 2000 + 3), back.data(), count, *type), 4 * 2000);
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(back[i * stride], i < 2000 ? values[i * stride] : -1) << i << ", stride " << stride;
  }
}

TEST(External32Test, BytesOfExternal32AreSoManyBytesOfMemory) {
  EXPECT_EQ(MemorySizeOfExternal(0, Type(MPI_LONG)), 0);
  EXPECT_EQ(MemorySizeOfExternal(12, Type(MPI_LONG)), 24);
  EXPECT_EQ(MemorySizeOfExternal(6, Type(MPI_LONG)), MPI_UNDEFINED);
  EXPECT_EQ(MemorySizeOfExternal(7, Type(MPI_BYTE)), 7);
  // A pair's elements count one by one.
  const MPI_Aint ones[] = {1, 2}, at[] = {0, 8};
  const Ref<const Datatype> fields[] = {Ref<const Datatype>(&Type(MPI_SHORT)), Ref<const Datatype>(&Type(MPI_LONG))};
  const Ref<Datatype> type = MakeStruct(ones, at, fields);  // 2 + 8 bytes of 2 + 16
  EXPECT_EQ(MemorySizeOfExternal(20, *type), 36);
  EXPECT_EQ(MemorySizeOfExternal(12, *type), 20);
  EXPECT_EQ(MemorySizeOfExternal(16, *type), 28);
  EXPECT_EQ(MemorySizeOfExternal(17, *type), MPI_UNDEFINED);
  const Ref<Datatype> nothing = MakeContiguous(0, Type(MPI_INT));
  EXPECT_EQ(MemorySizeOfExternal(0, *nothing), 0);
  EXPECT_EQ(MemorySizeOfExternal(4, *nothing), MPI_UNDEFINED);
}

}  // namespace
}  // namespace weft::mpi
