#ifndef MPI_HYBRID_API_COMM_ARGUMENTS_H_
#define MPI_HYBRID_API_COMM_ARGUMENTS_H_

#include <mpi.h>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/info.h"

namespace weft::mpi {

// Errors are MPI_ERR_COMM. For communicators in addition to the one that OnComm looks up.
Error FindComm(MPI_Comm handle, const char* argument, Comm** comm);
// Null for MPI_INFO_NULL.
Error FindInfo(MPI_Info handle, Info** info);
Error CheckInter(const Comm& comm);

// Adds the known hints that have valid values. `hints` null: none.
void SetHints(Comm& comm, const Info* hints);
// The same for a communicator that is being made and has sent nothing yet. It also accepts the stream of its messages
// ("weft_stream", 0 to 65533): over SCTP, all messages of this process on the communicator use that stream, modulo the
// number of streams.
void SetHintsOfNew(Comm& comm, const Info* hints);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_COMM_ARGUMENTS_H_
