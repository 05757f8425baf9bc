#ifndef MPI_HYBRID_SURVIVE_RECOVER_H_
#define MPI_HYBRID_SURVIVE_RECOVER_H_

#include <functional>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"

// Operations of the living members of a communicator after deaths, also on a revoked one (User Level Failure
// Mitigation). All of them block. Call with the library's lock held.
namespace weft::mpi::survive {

// MPIX_Comm_agree: `*flag` becomes the bitwise "and" of the flags of the living members (of both groups of an
// intercommunicator). MPIX_ERR_PROC_FAILED, at all members alike and with the flag: a member took no part, and not all
// others have acknowledged its death.
Error AgreeOn(Comm& comm, int* flag);
// MPIX_Comm_shrink: makes a communicator of the living members, in the order of their ranks. A member that dies
// meanwhile may be in it.
Error Shrink(Comm& comm, Ref<Comm>* made);
// MPIX_Comm_revoke.
void Revoke(Comm& comm);

// MPI_Abort of a communicator that is not the whole job. Tells the other members of its local group, which call the
// function of OnAborted, and waits at most one second until they have ended.
void AbortOthers(Comm& comm, int status);
// Sets the function to call when process `by` called MPI_Abort with `status` (8 bits). It is called from progress, with
// the library's lock held.
void OnAborted(std::function<void(ProcessId by, int status)> end);

// From now on this process answers others (service.h). Call it once, when messages can be sent.
void BeginToServe();
// MPI_Finalize after deaths: returns when all living members have called it.
void AwaitTheLiving(Comm& world);

}  // namespace weft::mpi::survive

#endif  // MPI_HYBRID_SURVIVE_RECOVER_H_
