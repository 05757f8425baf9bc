#ifndef MPI_HYBRID_IO_OPERATIONS_H_
#define MPI_HYBRID_IO_OPERATIONS_H_

#include <mpi.h>

#include <cstdint>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/io/access.h"
#include "mpi_hybrid/io/file.h"

// Data access (MPI 4.0 section 14.4). Call with the library's lock held; the transfer itself releases it.
namespace weft::mpi::io {

// The position in the view: an explicit offset, this process's pointer, or the pointer shared by all ranks. A pointer
// moves by the requested amount, even if the file ends before.
struct Place {
  enum class Kind : uint8_t { kExplicit, kIndividual, kShared };

  static Place At(MPI_Offset offset) { return {Kind::kExplicit, offset}; }
  static Place Pointer() { return {Kind::kIndividual, 0}; }
  static Place Shared() { return {Kind::kShared, 0}; }

  Kind kind = Kind::kExplicit;
  MPI_Offset offset = 0;  // in etypes
};

// A valid buffer of the program.
struct Data {
  const void* buffer = nullptr;
  MPI_Count count = 0;
  const Datatype* type = nullptr;
};

// By this process alone. `*moved`: bytes of data.
Error Transfer(File& file, Access::Direction direction, const Place& place, const Data& data, MPI_Count* moved);

// Collective. With the shared pointer, accesses are in the order of the ranks (MPI_File_read_ordered,
// MPI_File_write_ordered). `refusal`: why this process cannot take part; then all fail.
Error TransferTogether(File& file, Access::Direction direction, const Place& place, const Data& data, const Error& refusal, MPI_Count* moved);

// The same in the background. The caller owns the reference in `*request`. Pointers have moved when these functions
// return; later errors are errors of the request. With the shared pointer, StartTransferTogether waits for the other
// ranks.
Error StartTransfer(File& file, Access::Direction direction, const Place& place, const Data& data, Request** request);
Error StartTransferTogether(File& file, Access::Direction direction, const Place& place, const Data& data, const Error& refusal, Request** request);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_OPERATIONS_H_
