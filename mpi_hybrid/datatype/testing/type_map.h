#ifndef MPI_HYBRID_DATATYPE_TESTING_TYPE_MAP_H_
#define MPI_HYBRID_DATATYPE_TESTING_TYPE_MAP_H_

#include <mpi.h>

#include <random>
#include <string>
#include <vector>

#include "mpi_hybrid/datatype/datatype.h"

// A second, naive implementation of datatypes: type maps written out element by element, as in MPI 4.0 section 5.1.
namespace weft::mpi::testing {

struct Entry {
  MPI_Datatype basic;
  MPI_Aint displacement;
};

struct TypeMap {
  std::vector<Entry> entries;
  MPI_Aint lb = 0, ub = 0;
  bool has_bounds = false;  // false: the type is empty, without entries and without bounds of its own
  int alignment = 1;

  MPI_Aint extent() const { return ub - lb; }
};

// A type and its map, made by the same random steps.
struct RandomType {
  Ref<Datatype> type;
  TypeMap map;
  std::string text;  // how the type was made
};

// `depth`: at most so many constructors around the basic types.
RandomType MakeRandomType(std::mt19937_64& random, int depth);

// The offsets of the bytes of data of `count` elements, in the order of the type map.
std::vector<MPI_Aint> ByteOffsets(const TypeMap& map, MPI_Aint count);

}  // namespace weft::mpi::testing

#endif  // MPI_HYBRID_DATATYPE_TESTING_TYPE_MAP_H_
