#ifndef MPI_HYBRID_SURVIVE_FAILURES_H_
#define MPI_HYBRID_SURVIVE_FAILURES_H_

#include "mpi_hybrid/comm/communicator.h"

// The deaths in a communicator that the program knows of. Call with the library's lock held.
namespace weft::mpi::survive {

// MPIX_Comm_failure_ack: acknowledges the deaths of the members that this process knows to be gone (of both groups of
// an intercommunicator). They no longer block receives from MPI_ANY_SOURCE, nor do they make an agreement fail.
void Acknowledge(Comm& comm);
// MPIX_Comm_failure_get_acked: the acknowledged members, in the order of their ranks; of an intercommunicator the local
// group first.
Ref<Group> Acknowledged(const Comm& comm);

}  // namespace weft::mpi::survive

#endif  // MPI_HYBRID_SURVIVE_FAILURES_H_
