#ifndef MPI_HYBRID_P2P_ATTACHED_BUFFER_H_
#define MPI_HYBRID_P2P_ATTACHED_BUFFER_H_

#include <mpi.h>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/datatype/datatype.h"

namespace weft::mpi {

// Buffered mode (MPI 4.0 section 3.6): copies the message into the buffer of MPI_Buffer_attach and starts to send it
// from there. Each message takes its packed size plus MPI_BSEND_OVERHEAD until it has been sent. MPI_ERR_BUFFER: no
// space.
Error SendBuffered(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ATTACHED_BUFFER_H_
