#include "mpi_hybrid/api/collective_arguments.h"

#include <string>

#include "mpi_hybrid/core/info.h"

namespace weft::mpi {
namespace {

// Prefixes an error of a check that does not know the argument's name.
Error Named(const Error& error, const std::string& argument) {
  if (error.ok()) return {};
  return Error(error.mpi_class(), argument + ": " + error.message());
}

Error CheckNamedCount(MPI_Aint count, const std::string& argument) {
  if (count >= 0) [[likely]]
    return {};
  return Error(MPI_ERR_COUNT, argument + " is negative: " + std::to_string(count));
}

}  // namespace

Error UniformArgument::Set(const char* side, const One& given) {
  if (given.count < 0) return CheckNamedCount(given.count, std::string(side) + "count");
  if (Error error = FindTypeOfData(given.count, given.type, &uniform_.type); !error.ok())
    return Named(error, std::string(side) + "type");
  if (Error error = CheckBuffer(given.buffer, given.count, *uniform_.type); !error.ok())
    return Named(error, std::string(side) + "buf");
  uniform_.buffer = given.buffer;
  uniform_.count = given.count;
  return {};
}

const void* UniformArgument::block(int index) const {
  if (uniform_.buffer == nullptr) return nullptr;
  return static_cast<const char*>(uniform_.buffer) + index * uniform_.count * uniform_.type->extent;
}

Error VaryingArgument::SetCounts(const char* side, IntArray counts, IntArray displacements) {
  if (n_ == 0) return {};
  if (counts.null()) return Error(MPI_ERR_ARG, std::string(side) + "counts is a null pointer");
  if (displacements.null()) return Error(MPI_ERR_ARG, std::string(side) + " displacements are a null pointer");
  for (size_t i = 0; i < n_; ++i) {
    counts_[i] = counts[i];
    displacements_[i] = displacements[i];
    if (counts_[i] < 0) return CheckNamedCount(counts_[i], std::string(side) + "counts[" + std::to_string(i) + "]");
  }
  return {};
}

void VaryingArgument::Use(const void* buffer) {
  varying_.buffer = buffer;
  varying_.counts = counts_.span();
  varying_.displacements = displacements_.span();
}

Error VaryingArgument::Set(const char* side, const One& given) {
  UniformArgument each;
  WEFT_MPI_TRY(each.Set(side, given));
  for (size_t i = 0; i < n_; ++i) {
    counts_[i] = given.count;
    displacements_[i] = static_cast<MPI_Aint>(i) * given.count;
  }
  varying_.type = each.get().type;
  Use(given.buffer);
  return {};
}

Error VaryingArgument::Set(const char* side, const Each& given) {
  WEFT_MPI_TRY(SetCounts(side, given.counts, given.displacements));
  if (Error error = FindCommitted(given.type, &varying_.type); !error.ok())
    return Named(error, std::string(side) + "type");
  for (size_t i = 0; i < n_ && given.buffer == nullptr; ++i) {
    WEFT_MPI_TRY(Named(CheckBuffer(given.buffer, counts_[i], *varying_.type), std::string(side) + "buf"));
  }
  Use(given.buffer);
  return {};
}

Error VaryingArgument::Set(const char* side, const Typed& given) {
  WEFT_MPI_TRY(SetCounts(side, given.counts, given.displacements));
  if (n_ != 0 && given.types == nullptr) return Error(MPI_ERR_ARG, std::string(side) + "types is a null pointer");
  for (size_t i = 0; i < n_; ++i) {
    const std::string index = "[" + std::to_string(i) + "]";
    if (Error error = FindTypeOfData(counts_[i], given.types[i], &types_[i]); !error.ok())
      return Named(error, std::string(side) + "types" + index);
    // MPI_BOTTOM with displacements that are addresses is legal.
    if (given.buffer == nullptr && displacements_[i] == 0)
      WEFT_MPI_TRY(Named(CheckBuffer(given.buffer, counts_[i], *types_[i]), std::string(side) + "buf" + index));
  }
  Use(given.buffer);
  varying_.types = types_.span();
  return {};
}

const void* VaryingArgument::block(int index) const {
  if (varying_.buffer == nullptr) return nullptr;
  return static_cast<const char*>(varying_.buffer) +
         varying_.displacements[static_cast<size_t>(index)] * varying_.type->extent;
}

bool VaryingArgument::empty() {
  for (size_t i = 0; i < n_; ++i) {
    const Datatype& type = varying_.types.empty() ? *varying_.type : *varying_.types[i];
    if (counts_[i] * type.size != 0) return false;
  }
  return true;
}

Error CheckNotInPlace(const char* argument, const void* buffer, const char* where) {
  if (buffer != MPI_IN_PLACE) [[likely]]
    return {};
  return Error(MPI_ERR_BUFFER, std::string(argument) + " is MPI_IN_PLACE, which is not legal " + where);
}

Error CheckInPlace(const Comm& comm, const char* argument, const void* buffer) {
  if (!comm.inter) [[likely]]
    return {};
  return CheckNotInPlace(argument, buffer, "on an intercommunicator");
}

Error CheckDistinct(const void* sendbuf, const void* recvbuf, bool empty) {
  if (sendbuf != recvbuf || sendbuf == nullptr || empty) [[likely]]
    return {};
  return Error(MPI_ERR_BUFFER, "sendbuf and recvbuf are the same memory: use MPI_IN_PLACE instead");
}

Error CheckInfo(MPI_Info info) {
  if (info == MPI_INFO_NULL || Info::Find(info) != nullptr) return {};
  return Error(MPI_ERR_INFO, "info " + std::to_string(info) + " is not an info object");
}

}  // namespace weft::mpi
