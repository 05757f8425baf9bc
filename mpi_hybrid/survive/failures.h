#ifndef MPI_HYBRID_SURVIVE_FAILURES_H_
#define MPI_HYBRID_SURVIVE_FAILURES_H_

#include "mpi_hybrid/comm/communicator.h"

// What the program knows of the deaths in a communicator. With the library's lock.
namespace weft::mpi::survive {

// MPIX_Comm_failure_ack: the members that this process knows to be gone (of an intercommunicator those of both groups) no longer
// hinder receives from MPI_ANY_SOURCE, nor do they make an agreement fail.
void Acknowledge(Comm& comm);
// MPIX_Comm_failure_get_acked: those, in the order of their ranks; of an intercommunicator the local group's first.
Ref<Group> Acknowledged(const Comm& comm);

}  // namespace weft::mpi::survive

#endif  // MPI_HYBRID_SURVIVE_FAILURES_H_
