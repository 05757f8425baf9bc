#ifndef MPI_HYBRID_SURVIVE_RECOVER_H_
#define MPI_HYBRID_SURVIVE_RECOVER_H_

#include <functional>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"

// What the living members of a communicator do together after deaths, on a revoked one too (User Level Failure Mitigation). All wait, and with
// the library's lock.
namespace weft::mpi::survive {

// MPIX_Comm_agree: `*flag` becomes the bitwise "and" of those of the members that live; of an intercommunicator those of both groups. At all alike
// MPIX_ERR_PROC_FAILED, with the flag, where one took no part whose death was not acknowledged by all of the others.
Error AgreeOn(Comm& comm, int* flag);
// MPIX_Comm_shrink: a communicator of those that live, in the order of their ranks. One that dies meanwhile may be in it.
Error Shrink(Comm& comm, Ref<Comm>* made);
// MPIX_Comm_revoke.
void Revoke(Comm& comm);

// MPI_Abort of a communicator that is not the whole job: tells the other members of its local group, which call what OnAborted said, and waits for
// their end for a second at most.
void AbortOthers(Comm& comm, int status);
// With the library's lock, from progress. `by` called MPI_Abort with `status`, of 8 bits.
void OnAborted(std::function<void(ProcessId by, int status)> end);

// Makes this process one that answers others (service.h): once, when messages can be sent.
void BeginToServe();
// MPI_Finalize after deaths: nobody leaves before all that live are there.
void AwaitTheLiving(Comm& world);

}  // namespace weft::mpi::survive

#endif  // MPI_HYBRID_SURVIVE_RECOVER_H_
