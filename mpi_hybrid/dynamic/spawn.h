#ifndef MPI_HYBRID_DYNAMIC_SPAWN_H_
#define MPI_HYBRID_DYNAMIC_SPAWN_H_

#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "pmi/client.h"

// Jobs that a job starts (MPI 4.0 section 11.8). Call with the library's lock held.
namespace weft::mpi {

// The arguments of the root.
struct SpawnOrder {
  std::vector<pmi::SpawnCommand> commands;
  Error refusal;  // why it cannot take place; it then fails at all processes of the group
};

// Collective over `comm`. Only the root's arguments count (`order` is null elsewhere). Has the launcher start the
// processes, and makes the intercommunicator with them. `errors`, at all ranks: an error class for each requested
// process; MPI_SUCCESS if it runs. MPI_ERR_SPAWN: the processes could not be started, and none runs.
Error SpawnGroup(const SpawnOrder* order, int root, Comm& comm, std::vector<int>* errors, Ref<Comm>* made);

// Collective over MPI_COMM_WORLD, in MPI_Init. Makes the intercommunicator with the parents if this job was spawned;
// else null.
Error MeetParents(Ref<Comm>* parents);
// Called before MPI_Comm_disconnect waits for the other processes on `comm`. If `comm` is this process's last
// communicator with its parents' jobs, this tells the launcher that the two jobs are separate. The launcher is told
// before the wait, so that it knows about all ranks when the wait ends at any of them.
void LeaveParents(const Comm& comm);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DYNAMIC_SPAWN_H_
