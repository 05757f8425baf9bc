#ifndef MPI_HYBRID_DYNAMIC_JOIN_H_
#define MPI_HYBRID_DYNAMIC_JOIN_H_

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"

namespace weft::mpi {

// MPI_Comm_join (MPI 4.0 section 11.10.4): makes an intercommunicator with the process at the other end of `fd`, a
// connected stream socket. The two processes exchange their addresses over it. Waits until the other process calls it
// as well. Afterwards the socket is the caller's again, with no data left in it.
Error Join(int fd, Ref<Comm>* made);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DYNAMIC_JOIN_H_
