#include <algorithm>
#include <cstring>
#include <string>

#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/type_arguments.h"
#include "mpi_hybrid/datatype/constructors.h"

// What a program asks of datatypes and does with them (MPI 4.0 sections 5.1.5 to 5.1.13, 19.1.5); constructors are in
// datatype_make.cc.
namespace weft::mpi {
namespace {

Error FindByPointer(MPI_Datatype* handle, Datatype** type) {
  WEFT_MPI_TRY(CheckNotNull(handle, "datatype"));
  return FindAnyType(*handle, type);
}

Error Commit(MPI_Datatype* handle) {
  Datatype* type;
  WEFT_MPI_TRY(FindByPointer(handle, &type));
  type->committed = true;
  return {};
}

bool IsF90(const Datatype& type) { return type.builtin && type.contents.combiner != MPI_COMBINER_NAMED; }

Error FreeType(MPI_Datatype* handle) {
  Datatype* type;
  WEFT_MPI_TRY(FindByPointer(handle, &type));
  if (type->builtin && !IsF90(*type)) return Error(MPI_ERR_TYPE, "the predefined datatype " + type->name + " cannot be freed");
  if (!type->builtin) {
    if (type->users == 1) WEFT_MPI_TRY(type->attributes.DeleteAll(*handle));
    Datatype::TakeBack(*type);
  }
  *handle = MPI_DATATYPE_NULL;  // types of MPI_Type_create_f90_* live on, whether or not the program frees them
  return {};
}

Error Duplicate(MPI_Datatype handle, MPI_Datatype* made) {
  const Datatype* old;
  WEFT_MPI_TRY(FindType(handle, &old));
  WEFT_MPI_TRY(CheckNotNull(made, "newtype"));
  Ref<Datatype> copy = MakeDuplicate(*old);
  copy->committed = old->committed;
  copy->big = old->big;
  copy->contents.combiner = MPI_COMBINER_DUP;
  copy->contents.types.emplace_back(old);
  WEFT_MPI_TRY(old->attributes.CopyTo(handle, &copy->attributes));
  *made = Datatype::Give(*copy);
  return {};
}

template <typename N>
Error GetSize(MPI_Datatype handle, N* size) {
  Datatype* type;
  WEFT_MPI_TRY(FindAnyType(handle, &type));
  WEFT_MPI_TRY(CheckNotNull(size, "size"));
  Express(type->size, size);
  return {};
}

Error GetExtent(MPI_Datatype handle, MPI_Aint* lb, MPI_Aint* extent) {
  Datatype* type;
  WEFT_MPI_TRY(FindAnyType(handle, &type));
  WEFT_MPI_TRY(CheckNotNull(lb, "lb"));
  WEFT_MPI_TRY(CheckNotNull(extent, "extent"));
  *lb = type->lb;
  *extent = type->extent;
  return {};
}

Error GetTrueExtent(MPI_Datatype handle, MPI_Aint* lb, MPI_Aint* extent) {
  Datatype* type;
  WEFT_MPI_TRY(FindAnyType(handle, &type));
  WEFT_MPI_TRY(CheckNotNull(lb, "true_lb"));
  WEFT_MPI_TRY(CheckNotNull(extent, "true_extent"));
  *lb = type->true_lb;
  *extent = type->true_extent;
  return {};
}

// One of the numbers of MPI-1's functions.
template <typename Choose>
Error GetBound(MPI_Datatype handle, MPI_Aint* out, Choose choose) {
  Datatype* type;
  WEFT_MPI_TRY(FindAnyType(handle, &type));
  WEFT_MPI_TRY(CheckNotNull(out, "displacement"));
  *out = choose(*type);
  return {};
}

Error RefuseLarge(const Datatype& type) {
  if (!type.big) return {};
  return Error(MPI_ERR_TYPE, "the datatype was made by a large-count function, whose arguments only MPI_Type_get_envelope_c and "
                             "MPI_Type_get_contents_c return");
}

Error GetEnvelope(MPI_Datatype handle, MPI_Count* integers, MPI_Count* addresses, MPI_Count* counts, MPI_Count* types,
                  int* combiner) {
  Datatype* type;
  WEFT_MPI_TRY(FindAnyType(handle, &type));
  const TypeContents& contents = type->contents;
  *integers = static_cast<MPI_Count>(contents.integers.size());
  *addresses = static_cast<MPI_Count>(contents.addresses.size());
  *counts = static_cast<MPI_Count>(contents.counts.size());
  *types = static_cast<MPI_Count>(contents.types.size());
  *combiner = contents.combiner;
  return {};
}

Error CheckRoom(MPI_Count room, size_t needed, const void* array, const char* max_name, const char* array_name) {
  if (room < static_cast<MPI_Count>(needed)) {
    return Error(MPI_ERR_ARG,
                 std::string(max_name) + " is " + std::to_string(room) + ", the datatype has " + std::to_string(needed));
  }
  return needed > 0 ? CheckNotNull(array, array_name) : Error();
}

struct ContentsArrays {
  MPI_Count max_integers, max_addresses, max_counts, max_types;
  int* integers;
  MPI_Aint* addresses;
  MPI_Count* counts;
  MPI_Datatype* types;
};

Error GetContents(MPI_Datatype handle, const ContentsArrays& out) {
  Datatype* type;
  WEFT_MPI_TRY(FindAnyType(handle, &type));
  const TypeContents& contents = type->contents;
  if (contents.combiner == MPI_COMBINER_NAMED) {
    return Error(MPI_ERR_TYPE, "the predefined datatype " + type->name + " has no contents");
  }
  WEFT_MPI_TRY(CheckRoom(out.max_integers, contents.integers.size(), out.integers, "max_integers", "array_of_integers"));
  WEFT_MPI_TRY(CheckRoom(out.max_addresses, contents.addresses.size(), out.addresses, "max_addresses", "array_of_addresses"));
  WEFT_MPI_TRY(CheckRoom(out.max_counts, contents.counts.size(), out.counts, "max_large_counts", "array_of_large_counts"));
  WEFT_MPI_TRY(CheckRoom(out.max_types, contents.types.size(), out.types, "max_datatypes", "array_of_datatypes"));
  std::copy(contents.integers.begin(), contents.integers.end(), out.integers);
  std::copy(contents.addresses.begin(), contents.addresses.end(), out.addresses);
  std::copy(contents.counts.begin(), contents.counts.end(), out.counts);
  for (size_t i = 0; i < contents.types.size(); ++i) {  // derived ones are the program's to free
    out.types[i] = Datatype::Give(const_cast<Datatype&>(*contents.types[i]));
  }
  return {};
}

Error GetName(MPI_Datatype handle, char* name, int* length) {
  Datatype* type;
  WEFT_MPI_TRY(FindAnyType(handle, &type));
  WEFT_MPI_TRY(CheckNotNull(name, "type_name"));
  WEFT_MPI_TRY(CheckNotNull(length, "resultlen"));
  std::memcpy(name, type->name.c_str(), type->name.size() + 1);
  *length = static_cast<int>(type->name.size());
  return {};
}

Error SetName(MPI_Datatype handle, const char* name) {
  Datatype* type;
  WEFT_MPI_TRY(FindAnyType(handle, &type));
  WEFT_MPI_TRY(CheckNotNull(name, "type_name"));
  type->name.assign(name, strnlen(name, MPI_MAX_OBJECT_NAME - 1));
  return {};
}

Error FindBySize(int type_class, int size, MPI_Datatype* found) {
  WEFT_MPI_TRY(CheckNotNull(found, "datatype"));
  if (type_class < MPI_TYPECLASS_REAL || type_class > MPI_TYPECLASS_COMPLEX) {
    return Error(MPI_ERR_ARG,
                 "typeclass is " + std::to_string(type_class) + ", none of MPI_TYPECLASS_REAL, _INTEGER and _COMPLEX");
  }
  const MPI_Datatype type = MatchSize(type_class, size);
  if (type == MPI_DATATYPE_NULL) {
    return Error(MPI_ERR_ARG, "no type of class " + std::to_string(type_class) + " has size " + std::to_string(size));
  }
  *found = type;
  return {};
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

int PMPI_Type_commit(MPI_Datatype* datatype) {
  return Anywhere("MPI_Type_commit", [&] { return Commit(datatype); });
}
WEFT_MPI_ALIAS(Type_commit)
int PMPI_Type_free(MPI_Datatype* datatype) {
  return Anywhere("MPI_Type_free", [&] { return FreeType(datatype); });
}
WEFT_MPI_ALIAS(Type_free)
int PMPI_Type_dup(MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return Anywhere("MPI_Type_dup", [&] {
    if (newtype != nullptr) *newtype = MPI_DATATYPE_NULL;  // also when a copy function refuses
    return Duplicate(oldtype, newtype);
  });
}
WEFT_MPI_ALIAS(Type_dup)

WEFT_MPI_BOTH(Type_size, (MPI_Datatype datatype, Count* size), Anywhere(name, [&] { return GetSize(datatype, size); }))

int PMPI_Type_size_x(MPI_Datatype datatype, MPI_Count* size) {
  return Anywhere("MPI_Type_size_x", [&] { return GetSize(datatype, size); });
}
WEFT_MPI_ALIAS(Type_size_x)

WEFT_MPI_BOTH(Type_get_extent, (MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent),
              Anywhere(name, [&] { return GetExtent(datatype, lb, extent); }))

int PMPI_Type_get_extent_x(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent) {
  return Anywhere("MPI_Type_get_extent_x", [&] { return GetExtent(datatype, lb, extent); });
}
WEFT_MPI_ALIAS(Type_get_extent_x)

WEFT_MPI_BOTH(Type_get_true_extent, (MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent),
              Anywhere(name, [&] { return GetTrueExtent(datatype, true_lb, true_extent); }))

int PMPI_Type_get_true_extent_x(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  return Anywhere("MPI_Type_get_true_extent_x", [&] { return GetTrueExtent(datatype, true_lb, true_extent); });
}
WEFT_MPI_ALIAS(Type_get_true_extent_x)

int PMPI_Type_extent(MPI_Datatype datatype, MPI_Aint* extent) {
  return Anywhere("MPI_Type_extent",
                  [&] { return GetBound(datatype, extent, [](const Datatype& type) { return type.extent; }); });
}
WEFT_MPI_ALIAS(Type_extent)
int PMPI_Type_lb(MPI_Datatype datatype, MPI_Aint* displacement) {
  return Anywhere("MPI_Type_lb", [&] { return GetBound(datatype, displacement, [](const Datatype& type) { return type.lb; }); });
}
WEFT_MPI_ALIAS(Type_lb)
int PMPI_Type_ub(MPI_Datatype datatype, MPI_Aint* displacement) {
  return Anywhere("MPI_Type_ub",
                  [&] { return GetBound(datatype, displacement, [](const Datatype& type) { return type.lb + type.extent; }); });
}
WEFT_MPI_ALIAS(Type_ub)

int PMPI_Type_get_envelope(MPI_Datatype datatype, int* num_integers, int* num_addresses, int* num_datatypes, int* combiner) {
  return Anywhere("MPI_Type_get_envelope", [&]() -> Error {
    MPI_Count integers, addresses, counts, types;
    WEFT_MPI_TRY(CheckNotNull(num_integers, "num_integers"));
    WEFT_MPI_TRY(CheckNotNull(num_addresses, "num_addresses"));
    WEFT_MPI_TRY(CheckNotNull(num_datatypes, "num_datatypes"));
    WEFT_MPI_TRY(CheckNotNull(combiner, "combiner"));
    WEFT_MPI_TRY(GetEnvelope(datatype, &integers, &addresses, &counts, &types, combiner));
    WEFT_MPI_TRY(RefuseLarge(*Datatype::FindWithMarkers(datatype)));
    Express(integers, num_integers);
    Express(addresses, num_addresses);
    Express(types, num_datatypes);
    return {};
  });
}
WEFT_MPI_ALIAS(Type_get_envelope)
int PMPI_Type_get_envelope_c(MPI_Datatype datatype, MPI_Count* num_integers, MPI_Count* num_addresses,
                             MPI_Count* num_large_counts, MPI_Count* num_datatypes, int* combiner) {
  return Anywhere("MPI_Type_get_envelope_c", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(num_integers, "num_integers"));
    WEFT_MPI_TRY(CheckNotNull(num_addresses, "num_addresses"));
    WEFT_MPI_TRY(CheckNotNull(num_large_counts, "num_large_counts"));
    WEFT_MPI_TRY(CheckNotNull(num_datatypes, "num_datatypes"));
    WEFT_MPI_TRY(CheckNotNull(combiner, "combiner"));
    return GetEnvelope(datatype, num_integers, num_addresses, num_large_counts, num_datatypes, combiner);
  });
}
WEFT_MPI_ALIAS(Type_get_envelope_c)

int PMPI_Type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes, int array_of_integers[],
                           MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[]) {
  return Anywhere("MPI_Type_get_contents", [&]() -> Error {
    if (const Datatype* type = Datatype::Find(datatype)) WEFT_MPI_TRY(RefuseLarge(*type));
    return GetContents(datatype, {max_integers, max_addresses, 0, max_datatypes, array_of_integers, array_of_addresses, nullptr,
                                  array_of_datatypes});
  });
}
WEFT_MPI_ALIAS(Type_get_contents)
int PMPI_Type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_large_counts,
                             MPI_Count max_datatypes, int array_of_integers[], MPI_Aint array_of_addresses[],
                             MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[]) {
  return Anywhere("MPI_Type_get_contents_c", [&] {
    return GetContents(datatype, {max_integers, max_addresses, max_large_counts, max_datatypes, array_of_integers,
                                  array_of_addresses, array_of_large_counts, array_of_datatypes});
  });
}
WEFT_MPI_ALIAS(Type_get_contents_c)

int PMPI_Type_get_name(MPI_Datatype datatype, char* type_name, int* resultlen) {
  return Anywhere("MPI_Type_get_name", [&] { return GetName(datatype, type_name, resultlen); });
}
WEFT_MPI_ALIAS(Type_get_name)
int PMPI_Type_set_name(MPI_Datatype datatype, const char* type_name) {
  return Anywhere("MPI_Type_set_name", [&] { return SetName(datatype, type_name); });
}
WEFT_MPI_ALIAS(Type_set_name)

int PMPI_Type_match_size(int typeclass, int size, MPI_Datatype* datatype) {
  return Anywhere("MPI_Type_match_size", [&] { return FindBySize(typeclass, size, datatype); });
}
WEFT_MPI_ALIAS(Type_match_size)
