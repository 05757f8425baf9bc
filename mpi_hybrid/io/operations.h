#ifndef MPI_HYBRID_IO_OPERATIONS_H_
#define MPI_HYBRID_IO_OPERATIONS_H_

#include <mpi.h>

#include <cstdint>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/io/access.h"
#include "mpi_hybrid/io/file.h"

// Data access (MPI 4.0 section 14.4). With the library's lock, which the transfer itself lets go of.
namespace weft::mpi::io {

// Which place in the view: an explicit offset, this process's pointer, or the one that all share. Pointers move by what was asked for,
// also where the file ends before.
struct Place {
  enum class Kind : uint8_t { kExplicit, kIndividual, kShared };

  static Place At(MPI_Offset offset) { return {Kind::kExplicit, offset}; }
  static Place Pointer() { return {Kind::kIndividual, 0}; }
  static Place Shared() { return {Kind::kShared, 0}; }

  Kind kind = Kind::kExplicit;
  MPI_Offset offset = 0;  // in etypes
};

// The program's memory; valid.
struct Data {
  const void* buffer = nullptr;
  MPI_Count count = 0;
  const Datatype* type = nullptr;
};

// By this process alone. `*moved`: bytes of data.
Error Transfer(File& file, Access::Direction direction, const Place& place, const Data& data, MPI_Count* moved);

// Collective. With the shared pointer: in the order of the ranks (MPI_File_read_ordered and its kin). `refusal`: why this process cannot
// take part; all fail then.
Error TransferTogether(File& file, Access::Direction direction, const Place& place, const Data& data, const Error& refusal, MPI_Count* moved);

// The same in the background: `*request` is the caller's reference. Pointers have moved when these return; what may fail later is the
// request's error. With the shared pointer StartTransferTogether waits for the other ranks.
Error StartTransfer(File& file, Access::Direction direction, const Place& place, const Data& data, Request** request);
Error StartTransferTogether(File& file, Access::Direction direction, const Place& place, const Data& data, const Error& refusal, Request** request);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_OPERATIONS_H_
