#include <climits>
#include <map>
#include <tuple>

#include "mpi_hybrid/datatype/constructors.h"

// Fortran types by precision and range (MPI 4.0 section 19.1.5) as gfortran on x86-64 chooses them.
namespace weft::mpi {
namespace {

struct FloatKind {
  int precision, range;  // decimal digits, decimal exponent: PRECISION() and RANGE() of the kind
  MPI_Datatype real, complex;
};
constexpr FloatKind kFloatKinds[] = {
    {6, 37, MPI_REAL4, MPI_COMPLEX8},
    {15, 307, MPI_REAL8, MPI_COMPLEX16},
    {18, 4931, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX},
    {33, 4931, MPI_REAL16, MPI_COMPLEX32},
};

struct IntegerKind {
  int range;  // decimal digits
  MPI_Datatype type;
};
constexpr IntegerKind kIntegerKinds[] = {{2, MPI_INTEGER1}, {4, MPI_INTEGER2}, {9, MPI_INTEGER4}, {18, MPI_INTEGER8}};

// An unnamed predefined type: a copy of `base` with contents that say how it was asked for.
Datatype* Unnamed(int combiner, std::vector<int> arguments, MPI_Datatype base) {
  static auto& made = *new std::map<std::pair<int, std::vector<int>>, Ref<Datatype>>;
  Ref<Datatype>& type = made[{combiner, arguments}];
  if (!type) {
    type = MakeDuplicate(*Datatype::Find(base));
    type->contents.combiner = combiner;
    type->contents.integers = std::move(arguments);
    type->committed = true;
    Datatype::Give(*type);
    type->builtin = true;
  }
  return type.get();
}

const FloatKind* FindFloat(int precision, int range) {
  if (precision == MPI_UNDEFINED) precision = INT_MIN;
  if (range == MPI_UNDEFINED) range = INT_MIN;
  for (const FloatKind& kind : kFloatKinds) {
    if (precision <= kind.precision && range <= kind.range) return &kind;
  }
  return nullptr;
}

}  // namespace

Datatype* F90Real(int precision, int range) {
  const FloatKind* kind = FindFloat(precision, range);
  return kind ? Unnamed(MPI_COMBINER_F90_REAL, {precision, range}, kind->real) : nullptr;
}

Datatype* F90Complex(int precision, int range) {
  const FloatKind* kind = FindFloat(precision, range);
  return kind ? Unnamed(MPI_COMBINER_F90_COMPLEX, {precision, range}, kind->complex) : nullptr;
}

Datatype* F90Integer(int range) {
  for (const IntegerKind& kind : kIntegerKinds) {
    if (range <= kind.range) return Unnamed(MPI_COMBINER_F90_INTEGER, {range}, kind.type);
  }
  return nullptr;
}

MPI_Datatype MatchSize(int type_class, MPI_Count size) {
  static constexpr std::tuple<int, MPI_Count, MPI_Datatype> kTypes[] = {
      {MPI_TYPECLASS_REAL, 4, MPI_REAL4},         {MPI_TYPECLASS_REAL, 8, MPI_REAL8},
      {MPI_TYPECLASS_REAL, 16, MPI_REAL16},       {MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1},
      {MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},   {MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4},
      {MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},   {MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8},
      {MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16}, {MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32},
  };
  for (const auto& [kind, bytes, type] : kTypes) {
    if (kind == type_class && bytes == size) return type;
  }
  return MPI_DATATYPE_NULL;
}

}  // namespace weft::mpi
