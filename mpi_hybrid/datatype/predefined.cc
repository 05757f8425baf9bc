#include "mpi_hybrid/datatype/predefined.h"

#include <cstddef>

#include "mpi_hybrid/core/handle.h"
#include "mpi_hybrid/datatype/floats.h"

namespace weft::mpi {
namespace {

template <typename T>
struct Complex {
  T real, imaginary;
};
template <typename A, typename B>
struct Pair {
  A value;
  B index;
};

template <typename T>
constexpr Basic Make(MPI_Datatype handle, const char* name, BasicKind kind, size_t external = sizeof(T)) {
  return {handle, name, kind, sizeof(T), sizeof(T), alignof(T), static_cast<uint8_t>(external)};
}

template <typename A, typename B>
constexpr Basic MakePair(MPI_Datatype handle, const char* name, const Basic& first, const Basic& second) {
  using Both = Pair<A, B>;
  return {handle, name, BasicKind::kPair, sizeof(A) + sizeof(B), sizeof(Both), alignof(Both),
          static_cast<uint8_t>(first.external + second.external), first.handle, second.handle, offsetof(Both, index)};
}

// Sizes in external32: MPI 4.0 table 14.2. Integers that are longer in memory lose their upper bytes there.
constexpr Basic kShort = Make<short>(MPI_SHORT, "MPI_SHORT", BasicKind::kSigned);
constexpr Basic kInt = Make<int>(MPI_INT, "MPI_INT", BasicKind::kSigned);
constexpr Basic kLong = Make<long>(MPI_LONG, "MPI_LONG", BasicKind::kSigned, 4);
constexpr Basic kFloat = Make<float>(MPI_FLOAT, "MPI_FLOAT", BasicKind::kFloat);
constexpr Basic kDouble = Make<double>(MPI_DOUBLE, "MPI_DOUBLE", BasicKind::kFloat);
constexpr Basic kLongDouble = Make<long double>(MPI_LONG_DOUBLE, "MPI_LONG_DOUBLE", BasicKind::kFloat);
constexpr Basic kInteger = Make<MPI_Fint>(MPI_INTEGER, "MPI_INTEGER", BasicKind::kSigned);
constexpr Basic kReal = Make<float>(MPI_REAL, "MPI_REAL", BasicKind::kFloat);
constexpr Basic kDoublePrecision = Make<double>(MPI_DOUBLE_PRECISION, "MPI_DOUBLE_PRECISION", BasicKind::kFloat);

constexpr Basic kBasics[] = {
    {MPI_LB, "MPI_LB", BasicKind::kMarker, 0, 0, 1, 0},
    {MPI_UB, "MPI_UB", BasicKind::kMarker, 0, 0, 1, 0},
    Make<char>(MPI_CHAR, "MPI_CHAR", BasicKind::kSigned),
    Make<unsigned char>(MPI_UNSIGNED_CHAR, "MPI_UNSIGNED_CHAR", BasicKind::kUnsigned),
    Make<char>(MPI_BYTE, "MPI_BYTE", BasicKind::kByte),
    Make<char>(MPI_PACKED, "MPI_PACKED", BasicKind::kByte),
    Make<signed char>(MPI_SIGNED_CHAR, "MPI_SIGNED_CHAR", BasicKind::kSigned),
    Make<char>(MPI_CHARACTER, "MPI_CHARACTER", BasicKind::kSigned),
    Make<int8_t>(MPI_INTEGER1, "MPI_INTEGER1", BasicKind::kSigned),
    Make<bool>(MPI_CXX_BOOL, "MPI_CXX_BOOL", BasicKind::kLogical),
    Make<int8_t>(MPI_INT8_T, "MPI_INT8_T", BasicKind::kSigned),
    Make<uint8_t>(MPI_UINT8_T, "MPI_UINT8_T", BasicKind::kUnsigned),
    Make<bool>(MPI_C_BOOL, "MPI_C_BOOL", BasicKind::kLogical),
    kShort,
    Make<unsigned short>(MPI_UNSIGNED_SHORT, "MPI_UNSIGNED_SHORT", BasicKind::kUnsigned),
    Make<int16_t>(MPI_INTEGER2, "MPI_INTEGER2", BasicKind::kSigned),
    Make<int16_t>(MPI_INT16_T, "MPI_INT16_T", BasicKind::kSigned),
    Make<uint16_t>(MPI_UINT16_T, "MPI_UINT16_T", BasicKind::kUnsigned),
    Make<uint16_t>(MPIX_C_FLOAT16, "MPIX_C_FLOAT16", BasicKind::kFloat),
    kInt,
    Make<unsigned>(MPI_UNSIGNED, "MPI_UNSIGNED", BasicKind::kUnsigned),
    kFloat,
    Make<wchar_t>(MPI_WCHAR, "MPI_WCHAR", BasicKind::kWide, 2),
    kInteger,
    kReal,
    Make<MPI_Fint>(MPI_LOGICAL, "MPI_LOGICAL", BasicKind::kLogical),
    Make<float>(MPI_REAL4, "MPI_REAL4", BasicKind::kFloat),
    Make<int32_t>(MPI_INTEGER4, "MPI_INTEGER4", BasicKind::kSigned),
    Make<int32_t>(MPI_INT32_T, "MPI_INT32_T", BasicKind::kSigned),
    Make<uint32_t>(MPI_UINT32_T, "MPI_UINT32_T", BasicKind::kUnsigned),
    kLong,
    Make<unsigned long>(MPI_UNSIGNED_LONG, "MPI_UNSIGNED_LONG", BasicKind::kUnsigned, 4),
    Make<long long>(MPI_LONG_LONG_INT, "MPI_LONG_LONG_INT", BasicKind::kSigned),
    kDouble,
    Make<unsigned long long>(MPI_UNSIGNED_LONG_LONG, "MPI_UNSIGNED_LONG_LONG", BasicKind::kUnsigned),
    Make<Complex<float>>(MPI_COMPLEX, "MPI_COMPLEX", BasicKind::kComplex),
    kDoublePrecision,
    Make<Complex<float>>(MPI_COMPLEX8, "MPI_COMPLEX8", BasicKind::kComplex),
    Make<double>(MPI_REAL8, "MPI_REAL8", BasicKind::kFloat),
    Make<int64_t>(MPI_INTEGER8, "MPI_INTEGER8", BasicKind::kSigned),
    Make<Complex<float>>(MPI_CXX_FLOAT_COMPLEX, "MPI_CXX_FLOAT_COMPLEX", BasicKind::kComplex),
    Make<int64_t>(MPI_INT64_T, "MPI_INT64_T", BasicKind::kSigned),
    Make<uint64_t>(MPI_UINT64_T, "MPI_UINT64_T", BasicKind::kUnsigned),
    Make<Complex<float>>(MPI_C_FLOAT_COMPLEX, "MPI_C_COMPLEX", BasicKind::kComplex),
    Make<MPI_Aint>(MPI_AINT, "MPI_AINT", BasicKind::kSigned),
    Make<MPI_Offset>(MPI_OFFSET, "MPI_OFFSET", BasicKind::kSigned),
    Make<MPI_Count>(MPI_COUNT, "MPI_COUNT", BasicKind::kSigned),
    kLongDouble,
    Make<Complex<double>>(MPI_DOUBLE_COMPLEX, "MPI_DOUBLE_COMPLEX", BasicKind::kComplex),
    Make<Complex<double>>(MPI_COMPLEX16, "MPI_COMPLEX16", BasicKind::kComplex),
    Make<Quad>(MPI_REAL16, "MPI_REAL16", BasicKind::kFloat),
    Make<Complex<double>>(MPI_CXX_DOUBLE_COMPLEX, "MPI_CXX_DOUBLE_COMPLEX", BasicKind::kComplex),
    Make<Complex<double>>(MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX", BasicKind::kComplex),
    Make<Complex<Quad>>(MPI_COMPLEX32, "MPI_COMPLEX32", BasicKind::kComplex),
    Make<Complex<long double>>(MPI_CXX_LONG_DOUBLE_COMPLEX, "MPI_CXX_LONG_DOUBLE_COMPLEX", BasicKind::kComplex),
    Make<Complex<long double>>(MPI_C_LONG_DOUBLE_COMPLEX, "MPI_C_LONG_DOUBLE_COMPLEX", BasicKind::kComplex),
    MakePair<int, int>(MPI_2INT, "MPI_2INT", kInt, kInt),
    MakePair<MPI_Fint, MPI_Fint>(MPI_2INTEGER, "MPI_2INTEGER", kInteger, kInteger),
    MakePair<float, float>(MPI_2REAL, "MPI_2REAL", kReal, kReal),
    MakePair<double, double>(MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION", kDoublePrecision, kDoublePrecision),
    MakePair<float, int>(MPI_FLOAT_INT, "MPI_FLOAT_INT", kFloat, kInt),
    MakePair<double, int>(MPI_DOUBLE_INT, "MPI_DOUBLE_INT", kDouble, kInt),
    MakePair<long, int>(MPI_LONG_INT, "MPI_LONG_INT", kLong, kInt),
    MakePair<short, int>(MPI_SHORT_INT, "MPI_SHORT_INT", kShort, kInt),
    MakePair<long double, int>(MPI_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT", kLongDouble, kInt),
};

// By the low byte of the handle; the five pair types of run-time form behind the others.
constexpr size_t kFirstPair = 0x80;
constexpr size_t Slot(MPI_Datatype handle) { return (HandleIndex(handle) & 0x7f) + (IsMade(handle) ? kFirstPair : 0); }

struct SlotTable {
  uint8_t row[kFirstPair + 5] = {};  // plus one; 0: none
  constexpr SlotTable() {
    for (size_t i = 0; i < std::size(kBasics); ++i) row[Slot(kBasics[i].handle)] = static_cast<uint8_t>(i + 1);
  }
};
constexpr SlotTable kSlots;

}  // namespace

const Basic* FindBasic(MPI_Datatype handle) {
  const size_t slot = Slot(handle);
  if (slot >= std::size(kSlots.row) || kSlots.row[slot] == 0) return nullptr;
  const Basic& basic = kBasics[kSlots.row[slot] - 1];
  return basic.handle == handle ? &basic : nullptr;
}

std::span<const Basic> AllBasics() { return kBasics; }

}  // namespace weft::mpi
