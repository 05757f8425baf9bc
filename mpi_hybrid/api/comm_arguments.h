#ifndef MPI_HYBRID_API_COMM_ARGUMENTS_H_
#define MPI_HYBRID_API_COMM_ARGUMENTS_H_

#include <mpi.h>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/info.h"

namespace weft::mpi {

// MPI_ERR_COMM. For communicators beside the one that OnComm looks up.
Error FindComm(MPI_Comm handle, const char* argument, Comm** comm);
// Null for MPI_INFO_NULL.
Error FindInfo(MPI_Info handle, Info** info);
Error CheckInter(const Comm& comm);

// Adds the hints that are known, with the values that they can have; null: none.
void SetHints(Comm& comm, const Info* hints);
// The same for one that is being made, on which nothing was sent, and with it the stream of its messages ("weft_stream",
// 0 to 65533): over SCTP all that this process sends on it goes on that stream, modulo those that there are.
void SetHintsOfNew(Comm& comm, const Info* hints);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_COMM_ARGUMENTS_H_
