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

Error MakeUniform(const char* side, const void* buffer, MPI_Count count, MPI_Datatype type, Uniform* uniform) {
  if (count < 0) return CheckNamedCount(count, std::string(side) + "count");
  if (Error error = FindTypeOfData(count, type, &uniform->type); !error.ok())
    return Named(error, std::string(side) + "type");
  if (Error error = CheckBuffer(buffer, count, *uniform->type); !error.ok())
    return Named(error, std::string(side) + "buf");
  uniform->buffer = buffer;
  uniform->count = count;
  return {};
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

Error VaryingArgument::Set(const char* side, const void* buffer, IntArray counts, IntArray displacements,
                           MPI_Datatype type) {
  WEFT_MPI_TRY(SetCounts(side, counts, displacements));
  if (Error error = FindCommitted(type, &varying_.type); !error.ok()) return Named(error, std::string(side) + "type");
  for (size_t i = 0; i < n_ && buffer == nullptr; ++i) {
    WEFT_MPI_TRY(Named(CheckBuffer(buffer, counts_[i], *varying_.type), std::string(side) + "buf"));
  }
  varying_.buffer = buffer;
  varying_.counts = counts_.span();
  varying_.displacements = displacements_.span();
  return {};
}

Error VaryingArgument::SetTyped(const char* side, const void* buffer, IntArray counts, IntArray displacements,
                                const MPI_Datatype* types) {
  WEFT_MPI_TRY(SetCounts(side, counts, displacements));
  if (n_ != 0 && types == nullptr) return Error(MPI_ERR_ARG, std::string(side) + "types is a null pointer");
  for (size_t i = 0; i < n_; ++i) {
    const std::string index = "[" + std::to_string(i) + "]";
    if (Error error = FindTypeOfData(counts_[i], types[i], &types_[i]); !error.ok())
      return Named(error, std::string(side) + "types" + index);
    // MPI_BOTTOM with displacements that are addresses is legal.
    if (buffer == nullptr && displacements_[i] == 0)
      WEFT_MPI_TRY(Named(CheckBuffer(buffer, counts_[i], *types_[i]), std::string(side) + "buf" + index));
  }
  varying_.buffer = buffer;
  varying_.counts = counts_.span();
  varying_.displacements = displacements_.span();
  varying_.types = types_.span();
  return {};
}

void VaryingArgument::SetUniform(const Uniform& uniform) {
  for (size_t i = 0; i < n_; ++i) {
    counts_[i] = uniform.count;
    displacements_[i] = static_cast<MPI_Aint>(i) * uniform.count;
  }
  varying_.buffer = uniform.buffer;
  varying_.counts = counts_.span();
  varying_.displacements = displacements_.span();
  varying_.type = uniform.type;
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
  return Error(MPI_ERR_BUFFER, "sendbuf and recvbuf are the same memory: MPI_IN_PLACE is the way to say that");
}

Error CheckInfo(MPI_Info info) {
  if (info == MPI_INFO_NULL || Info::Find(info) != nullptr) return {};
  return Error(MPI_ERR_INFO, "info " + std::to_string(info) + " is not an info object");
}

}  // namespace weft::mpi
