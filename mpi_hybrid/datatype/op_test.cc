#include "mpi_hybrid/datatype/op.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/datatype/constructors.h"
#include "mpi_hybrid/datatype/floats.h"
#include "mpi_hybrid/datatype/predefined.h"

namespace weft::mpi {
namespace {

constexpr MPI_Op kOps[] = {MPI_MAX, MPI_MIN, MPI_SUM,  MPI_PROD, MPI_LAND,   MPI_BAND,
                           MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};

const Datatype& Type(MPI_Datatype handle) { return *Datatype::Find(handle); }

// Which operations MPI 4.0 section 6.9.2 defines for the groups of types.
bool ShouldBeDefined(MPI_Op op, const Basic& basic) {
  const bool order = op == MPI_MAX || op == MPI_MIN;
  const bool arithmetic = op == MPI_SUM || op == MPI_PROD;
  const bool logical = op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR;
  const bool bits = op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR;
  switch (basic.kind) {
    case BasicKind::kSigned:
    case BasicKind::kUnsigned: return order || arithmetic || logical || bits;
    case BasicKind::kFloat: return order || arithmetic;
    case BasicKind::kComplex: return arithmetic;
    case BasicKind::kLogical: return logical;
    case BasicKind::kByte: return bits && basic.handle == MPI_BYTE;
    case BasicKind::kPair: return op == MPI_MINLOC || op == MPI_MAXLOC;
    default: return false;
  }
}

// One element, the slow way. A null function: the pair is not tested for this type.
using Combine = std::function<void(MPI_Op op, const uint8_t* in, uint8_t* inout)>;

template <typename T>
T Read(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename T>
void Write(T value, uint8_t* to) {
  std::memcpy(to, &value, sizeof value);
}

template <typename T>
void CombineIntegers(MPI_Op op, const uint8_t* in, uint8_t* inout) {
  const T a = Read<T>(in), b = Read<T>(inout);
  const __int128 x = a, y = b;
  __int128 result = 0;
  switch (op) {
    case MPI_MAX: result = x < y ? y : x; break;
    case MPI_MIN: result = x < y ? x : y; break;
    case MPI_SUM: result = x + y; break;
    case MPI_PROD: result = static_cast<__int128>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y)); break;
    case MPI_LAND: result = x && y; break;
    case MPI_LOR: result = x || y; break;
    case MPI_LXOR: result = !x != !y; break;
    case MPI_BAND: result = x & y; break;
    case MPI_BOR: result = x | y; break;
    case MPI_BXOR: result = x ^ y; break;
  }
  Write(static_cast<T>(result), inout);
}

template <typename T>
void CombineFloats(MPI_Op op, const uint8_t* in, uint8_t* inout) {
  const T a = Read<T>(in), b = Read<T>(inout);
  switch (op) {
    case MPI_MAX: return Write(a < b ? b : a, inout);
    case MPI_MIN: return Write(a < b ? a : b, inout);
    case MPI_SUM: return Write(static_cast<T>(a + b), inout);
    case MPI_PROD: return Write(static_cast<T>(a * b), inout);
  }
}

template <typename T>
void CombineComplex(MPI_Op op, const uint8_t* in, uint8_t* inout) {
  const T a = Read<T>(in), b = Read<T>(in + sizeof(T)), c = Read<T>(inout), d = Read<T>(inout + sizeof(T));
  Write(op == MPI_SUM ? a + c : a * c - b * d, inout);
  Write(op == MPI_SUM ? b + d : a * d + b * c, inout + sizeof(T));
}

template <typename V, typename I>
Combine CombinePairs(size_t index_offset) {
  return [index_offset](MPI_Op op, const uint8_t* in, uint8_t* inout) {
    const V a = Read<V>(in), b = Read<V>(inout);
    const I i = Read<I>(in + index_offset), j = Read<I>(inout + index_offset);
    const bool first_wins = op == MPI_MINLOC ? a < b : a > b;
    Write(a == b ? a : first_wins ? a : b, inout);
    Write(a == b ? std::min(i, j) : first_wins ? i : j, inout + index_offset);
  };
}

Combine PairReference(const Basic& basic) {
  const size_t at = basic.second_offset;
  switch (basic.handle) {
    case MPI_2INT:
    case MPI_2INTEGER: return CombinePairs<int, int>(at);
    case MPI_2REAL: return CombinePairs<float, float>(at);
    case MPI_2DOUBLE_PRECISION: return CombinePairs<double, double>(at);
    case MPI_FLOAT_INT: return CombinePairs<float, int>(at);
    case MPI_DOUBLE_INT: return CombinePairs<double, int>(at);
    case MPI_LONG_INT: return CombinePairs<long, int>(at);
    case MPI_SHORT_INT: return CombinePairs<short, int>(at);
    default: return CombinePairs<long double, int>(at);
  }
}

Combine Reference(const Basic& basic) {
  const bool is_signed = basic.kind == BasicKind::kSigned || basic.kind == BasicKind::kLogical;
  const bool quad = basic.handle == MPI_REAL16 || basic.handle == MPI_COMPLEX32;
  if (basic.kind == BasicKind::kPair) return PairReference(basic);
  if (basic.kind == BasicKind::kFloat) {
    switch (basic.size) {
#ifdef __FLT16_MANT_DIG__
      case 2: return CombineFloats<Half>;
#endif
      case 4: return CombineFloats<float>;
      case 8: return CombineFloats<double>;
      default: return quad ? CombineFloats<Quad> : CombineFloats<long double>;
    }
  }
  if (basic.kind == BasicKind::kComplex) {
    switch (basic.size) {
      case 8: return CombineComplex<float>;
      case 16: return CombineComplex<double>;
      default: return quad ? CombineComplex<Quad> : CombineComplex<long double>;
    }
  }
  switch (basic.size) {
    case 1: return is_signed && basic.kind != BasicKind::kLogical ? CombineIntegers<int8_t> : CombineIntegers<uint8_t>;
    case 2: return is_signed ? CombineIntegers<int16_t> : CombineIntegers<uint16_t>;
    case 4: return is_signed ? CombineIntegers<int32_t> : CombineIntegers<uint32_t>;
    default: return is_signed ? CombineIntegers<int64_t> : CombineIntegers<uint64_t>;
  }
}

// Small whole numbers in every number format, so that sums and products are exact; random bits in integers.
void Fill(const Basic& basic, uint8_t* at, std::mt19937_64& random) {
  const int small = static_cast<int>(random() % 13) - 6;
  const auto write_float = [&](size_t size, bool quad, uint8_t* to, int value) {
    switch (size) {
#ifdef __FLT16_MANT_DIG__
      case 2: return Write(static_cast<Half>(value), to);
#endif
      case 4: return Write(static_cast<float>(value), to);
      case 8: return Write(static_cast<double>(value), to);
      case 16: return quad ? Write(static_cast<Quad>(value), to) : Write(static_cast<long double>(value), to);
    }
  };
  switch (basic.kind) {
    case BasicKind::kFloat: return write_float(basic.size, basic.handle == MPI_REAL16, at, small);
    case BasicKind::kComplex:
      write_float(basic.size / 2, basic.handle == MPI_COMPLEX32, at, small);
      return write_float(basic.size / 2, basic.handle == MPI_COMPLEX32, at + basic.size / 2, 3 - small);
    case BasicKind::kPair:
      Fill(*FindBasic(basic.first), at, random);
      return Fill(*FindBasic(basic.second), at + basic.second_offset, random);
    case BasicKind::kLogical: return Write(static_cast<uint8_t>(random() % 2), at);
    default:
      for (size_t i = 0; i < basic.size; ++i) at[i] = static_cast<uint8_t>(random() % 3 == 0 ? 0 : random());
  }
}

// On x86 a long double is ten bytes of its sixteen; what is in the others is anything.
void ClearPadding(const Basic& basic, uint8_t* at) {
  constexpr size_t kPadding = 16 - kLongDoubleBytes;
  switch (basic.handle) {
    case MPI_C_LONG_DOUBLE_COMPLEX:
    case MPI_CXX_LONG_DOUBLE_COMPLEX: std::memset(at + 16 + kLongDoubleBytes, 0, kPadding); [[fallthrough]];
    case MPI_LONG_DOUBLE:
    case MPI_LONG_DOUBLE_INT: std::memset(at + kLongDoubleBytes, 0, kPadding);
  }
}

// The data of elements without padding, which reductions may change.
std::vector<uint8_t> DataOf(const std::vector<uint8_t>& elements, MPI_Aint count, const Datatype& type) {
  std::vector<uint8_t> data(static_cast<size_t>(count * type.size));
  TypeCursor cursor(elements.data(), count, type);
  Pack(cursor, data);
  for (MPI_Aint i = 0; i < count; ++i) ClearPadding(*FindBasic(type.handle), &data[static_cast<size_t>(i * type.size)]);
  return data;
}

struct Operands {
  Operands(const Basic& basic, MPI_Aint count, std::mt19937_64& random) {
    const size_t bytes = static_cast<size_t>(count * basic.extent);
    in.resize(bytes);
    inout.resize(bytes);
    for (MPI_Aint i = 0; i < count; ++i) {
      Fill(basic, &in[static_cast<size_t>(i * basic.extent)], random);
      Fill(basic, &inout[static_cast<size_t>(i * basic.extent)], random);
    }
    expected = inout;
  }
  std::vector<uint8_t> in, inout, expected;
};

// Calls check(op, basic, operands with their result) for every operation that is defined for a type.
template <typename Check>
void ForAllReductions(Check check) {
  std::mt19937_64 random(1);
  for (const Basic& basic : AllBasics()) {
    for (const MPI_Op op : kOps) {
      if (!Op::IsDefined(op, basic.handle)) continue;
      SCOPED_TRACE(std::string(basic.name) + " op " + std::to_string(op & 0xff));
      for (const MPI_Aint count : {1, 2, 7, 67, 1000}) {
        Operands operands(basic, count, random);
        const Combine combine = Reference(basic);
        for (MPI_Aint i = 0; i < count; ++i) combine(op, &operands.in[i * basic.extent], &operands.expected[i * basic.extent]);
        check(op, basic, count, operands);
      }
    }
  }
}

TEST(OpTest, IsDefinedForTheTypesOfTheStandard) {
  for (const Basic& basic : AllBasics()) {
    if (basic.kind == BasicKind::kMarker) continue;
    for (const MPI_Op op : kOps) {
#ifndef __FLT16_MANT_DIG__
      if (basic.handle == MPIX_C_FLOAT16) continue;
#endif
      EXPECT_EQ(Op::IsDefined(op, basic.handle), ShouldBeDefined(op, basic)) << basic.name << " op " << (op & 0xff);
      EXPECT_EQ(Op::Find(op)->Accepts(Type(basic.handle)).ok(), ShouldBeDefined(op, basic))
          << basic.name << " op " << (op & 0xff);
    }
    EXPECT_TRUE(Op::IsDefined(MPI_REPLACE, basic.handle));
    EXPECT_FALSE(Op::Find(MPI_REPLACE)->Accepts(Type(basic.handle)).ok());
  }
}

TEST(OpTest, ReducesAsOneElementAfterTheOther) {
  ForAllReductions([](MPI_Op op, const Basic& basic, MPI_Aint count, Operands& operands) {
    const Datatype& type = Type(basic.handle);
    Op::Find(op)->Apply(operands.in.data(), operands.inout.data(), count, type);
    ASSERT_EQ(DataOf(operands.inout, count, type), DataOf(operands.expected, count, type));
  });
}

TEST(OpTest, ReducesAtAnyAlignment) {
  ForAllReductions([](MPI_Op op, const Basic& basic, MPI_Aint count, Operands& operands) {
    const Datatype& type = Type(basic.handle);
    std::vector<uint8_t> in(operands.in.size() + 1), inout(operands.in.size() + 3);
    std::memcpy(&in[1], operands.in.data(), operands.in.size());
    std::memcpy(&inout[3], operands.inout.data(), operands.in.size());
    Op::Find(op)->Apply(&in[1], &inout[3], count, type);
    inout.erase(inout.begin(), inout.begin() + 3);
    ASSERT_EQ(DataOf(inout, count, type), DataOf(operands.expected, count, type));
  });
}

TEST(OpTest, OneSidedFormTakesPackedDataAndLeavesPaddingAlone) {
  ForAllReductions([](MPI_Op op, const Basic& basic, MPI_Aint count, Operands& operands) {
    const Datatype& type = Type(basic.handle);
    const std::vector<uint8_t> packed = DataOf(operands.in, count, type);
    for (const size_t shift : {0, 1}) {
      std::vector<uint8_t> memory(operands.inout.size() + shift, 0xa5), expected = memory;
      const auto fill = [&](std::vector<uint8_t>& to, const std::vector<uint8_t>& from) {
        TypeCursor cursor(&to[shift], count, type);
        Unpack(cursor, DataOf(from, count, type));
      };
      fill(memory, operands.inout);
      fill(expected, operands.expected);
      Op::ApplyBasic(op, basic.handle, packed.data(), &memory[shift], count);
      for (MPI_Aint i = 0; i < count; ++i) ClearPadding(basic, &memory[shift + static_cast<size_t>(i * basic.extent)]);
      ASSERT_EQ(memory, expected);
    }
  });
}

TEST(OpTest, ReplaceWritesAndNoOpDoesNot) {
  std::mt19937_64 random(2);
  for (const Basic& basic : AllBasics()) {
    if (basic.kind == BasicKind::kMarker) continue;
    const Datatype& type = Type(basic.handle);
    Operands operands(basic, 70, random);
    const std::vector<uint8_t> before = operands.inout, packed = DataOf(operands.in, 70, type);
    Op::ApplyBasic(MPI_NO_OP, basic.handle, packed.data(), operands.inout.data(), 70);
    EXPECT_EQ(operands.inout, before);
    Op::ApplyBasic(MPI_REPLACE, basic.handle, packed.data(), operands.inout.data(), 70);
    EXPECT_EQ(DataOf(operands.inout, 70, type), packed) << basic.name;
  }
}

TEST(OpTest, RefusalNamesOperationAndType) {
  const Error error = Op::Find(MPI_MAX)->Accepts(Type(MPI_C_DOUBLE_COMPLEX));
  EXPECT_EQ(error.mpi_class(), MPI_ERR_OP);
  EXPECT_EQ(error.message(), "MPI_MAX is not defined for MPI_C_DOUBLE_COMPLEX");
  const Ref<Datatype> derived = MakeContiguous(1, Type(MPI_INT));
  EXPECT_EQ(Op::Find(MPI_SUM)->Accepts(*derived).mpi_class(), MPI_ERR_OP);
  EXPECT_TRUE(Op::Find(MPI_SUM)->Accepts(*F90Real(6, 30)).ok());
}

// --- operations of the program ---

struct Call {
  const void* in;
  void* inout;
  MPI_Count count;
  MPI_Datatype type;
  bool type_was_valid;
};
std::vector<Call> g_calls;

void Note(void* in, void* inout, int* count, MPI_Datatype* type) {
  g_calls.push_back({in, inout, *count, *type, Datatype::Find(*type) != nullptr});
}
void NoteLarge(void* in, void* inout, MPI_Count* count, MPI_Datatype* type) {
  g_calls.push_back({in, inout, *count, *type, Datatype::Find(*type) != nullptr});
}
void Proxy(const void* in, void* inout, int count, MPI_Datatype type, MPI_User_function* function) {
  EXPECT_EQ(function, &Note);
  g_calls.push_back({in, inout, count, type, Datatype::Find(type) != nullptr});
}

TEST(OpTest, FunctionsOfTheProgramGetTheirArguments) {
  char a[12], b[12];
  g_calls.clear();
  const auto op = MakeRef<Op>();
  op->function = Note;
  op->Apply(a, b, 3, Type(MPI_INT));
  op->language = Op::Language::kCxx;
  op->cxx_proxy = Proxy;
  op->Apply(a, b, 3, Type(MPI_INT));
  ASSERT_EQ(g_calls.size(), 2u);
  for (const Call& call : g_calls) {
    EXPECT_EQ(call.in, a);
    EXPECT_EQ(call.inout, b);
    EXPECT_EQ(call.count, 3);
    EXPECT_EQ(call.type, MPI_INT);
  }
}

TEST(OpTest, CountsBeyondAnIntGoInParts) {
  constexpr MPI_Aint kCount = 5'000'000'000;
  auto* const base = reinterpret_cast<uint8_t*>(uintptr_t{1} << 40);  // never read
  g_calls.clear();
  const auto op = MakeRef<Op>();
  op->function = Note;
  op->Apply(base, base, kCount, Type(MPI_SHORT));
  ASSERT_EQ(g_calls.size(), 3u);
  EXPECT_EQ(g_calls[0].count, 2147483647);
  EXPECT_EQ(g_calls[1].in, base + 2 * 2147483647L);
  EXPECT_EQ(g_calls[0].count + g_calls[1].count + g_calls[2].count, kCount);
  const auto large = MakeRef<Op>();
  large->function_c = NoteLarge;
  large->Apply(base, base, kCount, Type(MPI_SHORT));
  EXPECT_EQ(g_calls.back().count, kCount);
}

TEST(OpTest, TypeThatTheProgramFreedMeanwhileHasAValidHandleInItsFunction) {
  const Ref<Datatype> type = MakeContiguous(2, Type(MPI_INT));
  Datatype::Give(*type);
  Datatype::TakeBack(*type);
  g_calls.clear();
  const auto op = MakeRef<Op>();
  op->function = Note;
  int a[2], b[2];
  op->Apply(a, b, 1, *type);
  ASSERT_EQ(g_calls.size(), 1u);
  EXPECT_TRUE(g_calls[0].type_was_valid);
  EXPECT_EQ(Datatype::Find(type->handle), nullptr);
}

TEST(OpTest, HandlesAreVoidAfterTheyAreTakenBack) {
  const auto op = MakeRef<Op>();
  const MPI_Op handle = Op::Give(*op);
  EXPECT_EQ(Op::Find(handle), op.get());
  Op::TakeBack(*op);
  EXPECT_EQ(Op::Find(handle), nullptr);
  EXPECT_EQ(Op::Find(MPI_OP_NULL), nullptr);
  EXPECT_EQ(Op::Find(static_cast<MPI_Op>(0x58000000)), nullptr);
  EXPECT_EQ(Op::Find(static_cast<MPI_Op>(0x5800000f)), nullptr);
  EXPECT_EQ(Op::Find(MPI_SUM)->handle, MPI_SUM);
}

void AskAboutType(void* in, void* inout, int* count, MPI_Datatype* type) {
  const LockGuard entry;  // as MPI_Type_get_extent does
  Note(in, inout, count, type);
}

TEST(OpTest, FunctionOfTheProgramMayAskAboutItsTypeUnderTheLock) {
  LibraryLock::EnableThreads();  // has the lock from here on
  g_calls.clear();
  const auto op = MakeRef<Op>();
  op->function = AskAboutType;
  int a = 1, b = 2;
  op->Apply(&a, &b, 1, Type(MPI_INT));
  EXPECT_EQ(g_calls.size(), 1u);
  LibraryLock::Release();
}

}  // namespace
}  // namespace weft::mpi
