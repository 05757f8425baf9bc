#include "mpi_hybrid/datatype/op_kernels.h"

#include <cstdint>
#include <type_traits>
#include <vector>

#include "mpi_hybrid/datatype/floats.h"
#include "mpi_hybrid/datatype/predefined.h"

// The loops of the predefined reductions, one for each C++ type and operation, simple enough for the compiler to vectorise.
namespace weft::mpi {
namespace {

template <typename T, T (*combine)(T, T)>
void Loop(const void* in, void* inout, MPI_Aint count) {
  const T* __restrict a = static_cast<const T*>(in);
  T* __restrict b = static_cast<T*>(inout);
  for (MPI_Aint i = 0; i < count; ++i) b[i] = combine(a[i], b[i]);
}

template <typename T>
T Max(T a, T b) {
  return a > b ? a : b;
}
template <typename T>
T Min(T a, T b) {
  return a < b ? a : b;
}
// Integers wrap around, as they do in every MPI library; signed overflow would be undefined.
template <typename T>
T Sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
    return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
  } else {
    return static_cast<T>(a + b);
  }
}
template <typename T>
T Product(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
    return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
  } else {
    return static_cast<T>(a * b);
  }
}
template <typename T>
T LogicalAnd(T a, T b) {
  return static_cast<T>((a != 0) & (b != 0));
}
template <typename T>
T LogicalOr(T a, T b) {
  return static_cast<T>((a != 0) | (b != 0));
}
template <typename T>
T LogicalXor(T a, T b) {
  return static_cast<T>((a != 0) ^ (b != 0));
}
template <typename T>
T BitAnd(T a, T b) {
  return static_cast<T>(a & b);
}
template <typename T>
T BitOr(T a, T b) {
  return static_cast<T>(a | b);
}
template <typename T>
T BitXor(T a, T b) {
  return static_cast<T>(a ^ b);
}

template <typename V, typename I>
struct Pair {
  V value;
  I index;
};

// Equal values: the smaller index (MPI 4.0 section 6.9.4). Most elements stay as they are, which a branch foresees.
template <typename V, typename I, bool (*is_better)(V, V)>
void LocationLoop(const void* in, void* inout, MPI_Aint count) {
  const Pair<V, I>* __restrict a = static_cast<const Pair<V, I>*>(in);
  Pair<V, I>* __restrict b = static_cast<Pair<V, I>*>(inout);
  for (MPI_Aint i = 0; i < count; ++i) {
    if (a[i].value == b[i].value) {
      b[i].index = Min(a[i].index, b[i].index);
    } else if (is_better(a[i].value, b[i].value)) {
      b[i] = a[i];
    }
  }
}
template <typename T>
bool IsLess(T a, T b) {
  return a < b;
}
template <typename T>
bool IsGreater(T a, T b) {
  return a > b;
}

// By the low byte of the operation's handle, MPI_MAX being 1.
struct Row {
  Kernel kernels[13] = {};
};
constexpr size_t Column(MPI_Op op) { return static_cast<size_t>(op) & 0xff; }

template <typename T>
constexpr void AddArithmetic(Row& row) {
  row.kernels[Column(MPI_SUM)] = Loop<T, Sum<T>>;
  row.kernels[Column(MPI_PROD)] = Loop<T, Product<T>>;
}
template <typename T>
constexpr void AddOrder(Row& row) {
  row.kernels[Column(MPI_MAX)] = Loop<T, Max<T>>;
  row.kernels[Column(MPI_MIN)] = Loop<T, Min<T>>;
}
template <typename T>
constexpr void AddLogical(Row& row) {
  row.kernels[Column(MPI_LAND)] = Loop<T, LogicalAnd<T>>;
  row.kernels[Column(MPI_LOR)] = Loop<T, LogicalOr<T>>;
  row.kernels[Column(MPI_LXOR)] = Loop<T, LogicalXor<T>>;
}
template <typename T>
constexpr void AddBits(Row& row) {
  row.kernels[Column(MPI_BAND)] = Loop<T, BitAnd<T>>;
  row.kernels[Column(MPI_BOR)] = Loop<T, BitOr<T>>;
  row.kernels[Column(MPI_BXOR)] = Loop<T, BitXor<T>>;
}

template <typename T>
constexpr Row MakeInteger() {
  Row row;
  AddArithmetic<T>(row);
  AddOrder<T>(row);
  AddLogical<T>(row);
  AddBits<T>(row);
  return row;
}
template <typename T>
constexpr Row MakeFloat() {
  Row row;
  AddArithmetic<T>(row);
  AddOrder<T>(row);
  return row;
}
template <typename T>
constexpr Row MakeComplex() {
  Row row;
  AddArithmetic<T>(row);
  return row;
}
template <typename T>
constexpr Row MakeLogical() {
  Row row;
  AddLogical<T>(row);
  return row;
}
constexpr Row MakeByte() {
  Row row;
  AddBits<uint8_t>(row);
  return row;
}
template <typename V, typename I>
constexpr Row MakePair() {
  Row row;
  row.kernels[Column(MPI_MINLOC)] = LocationLoop<V, I, IsLess<V>>;
  row.kernels[Column(MPI_MAXLOC)] = LocationLoop<V, I, IsGreater<V>>;
  return row;
}

template <typename T>
constexpr Row kInteger = MakeInteger<T>();
template <typename T>
constexpr Row kFloat = MakeFloat<T>();
template <typename T>
constexpr Row kComplex = MakeComplex<T>();
template <typename T>
constexpr Row kLogical = MakeLogical<T>();
constexpr Row kByte = MakeByte();
template <typename V, typename I>
constexpr Row kPair = MakePair<V, I>();

using ComplexFloat = __complex__ float;
using ComplexDouble = __complex__ double;
using ComplexLongDouble = __complex__ long double;

const Row* SignedOfSize(size_t size) {
  switch (size) {
    case 1: return &kInteger<int8_t>;
    case 2: return &kInteger<int16_t>;
    case 4: return &kInteger<int32_t>;
    default: return &kInteger<int64_t>;
  }
}

const Row* UnsignedOfSize(size_t size) {
  switch (size) {
    case 1: return &kInteger<uint8_t>;
    case 2: return &kInteger<uint16_t>;
    case 4: return &kInteger<uint32_t>;
    default: return &kInteger<uint64_t>;
  }
}

const Row* FloatRow(const Basic& basic) {
  if (basic.handle == MPI_REAL16) return &kFloat<Quad>;
  switch (basic.size) {
#ifdef __FLT16_MANT_DIG__
    case 2: return &kFloat<Half>;
#endif
    case 4: return &kFloat<float>;
    case 8: return &kFloat<double>;
    case 16: return &kFloat<long double>;
    default: return nullptr;
  }
}

const Row* ComplexRow(const Basic& basic) {
  if (basic.handle == MPI_COMPLEX32) return &kComplex<ComplexQuad>;
  switch (basic.size) {
    case 8: return &kComplex<ComplexFloat>;
    case 16: return &kComplex<ComplexDouble>;
    default: return &kComplex<ComplexLongDouble>;
  }
}

const Row* PairRow(const Basic& basic) {
  switch (basic.handle) {
    case MPI_2INT:
    case MPI_2INTEGER: return &kPair<int, int>;
    case MPI_2REAL: return &kPair<float, float>;
    case MPI_2DOUBLE_PRECISION: return &kPair<double, double>;
    case MPI_FLOAT_INT: return &kPair<float, int>;
    case MPI_DOUBLE_INT: return &kPair<double, int>;
    case MPI_LONG_INT: return &kPair<long, int>;
    case MPI_SHORT_INT: return &kPair<short, int>;
    default: return &kPair<long double, int>;
  }
}

const Row* RowOf(const Basic& basic) {
  switch (basic.kind) {
    case BasicKind::kSigned: return SignedOfSize(basic.size);
    case BasicKind::kUnsigned: return UnsignedOfSize(basic.size);
    case BasicKind::kFloat: return FloatRow(basic);
    case BasicKind::kComplex: return ComplexRow(basic);
    case BasicKind::kLogical: return basic.size == 1 ? &kLogical<uint8_t> : &kLogical<MPI_Fint>;
    case BasicKind::kByte: return basic.handle == MPI_BYTE ? &kByte : nullptr;
    case BasicKind::kPair: return PairRow(basic);
    case BasicKind::kMarker:
    case BasicKind::kWide: break;
  }
  return nullptr;
}

// For each of AllBasics() its row; made when the library is loaded, before any thread, and there as long as one may run.
const std::vector<const Row*>& kRows = []() -> const std::vector<const Row*>& {
  auto& rows = *new std::vector<const Row*>;
  for (const Basic& basic : AllBasics()) rows.push_back(RowOf(basic));
  return rows;
}();

}  // namespace

Kernel FindKernel(MPI_Op op, MPI_Datatype basic) {
  const Basic* found = FindBasic(basic);
  if (found == nullptr || op < MPI_MAX || op > MPI_MAXLOC) return nullptr;
  const Row* row = kRows[static_cast<size_t>(found - AllBasics().data())];
  return row != nullptr ? row->kernels[Column(op)] : nullptr;
}

}  // namespace weft::mpi
