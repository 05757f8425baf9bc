#ifndef MPI_HYBRID_DYNAMIC_SPAWN_H_
#define MPI_HYBRID_DYNAMIC_SPAWN_H_

#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "pmi/client.h"

// Jobs that a job starts (MPI 4.0 section 11.8). With the library's lock.
namespace weft::mpi {

// What the root gives.
struct SpawnOrder {
  std::vector<pmi::SpawnCommand> commands;
  Error refusal;  // why there can be none: it fails at all of the group then
};

// Collective over `comm`, of which `root` counts (`order` null elsewhere): has the launcher start the processes, and makes the
// intercommunicator with them. `errors`: a class for each process that was asked for, MPI_SUCCESS where it runs; at all ranks.
// MPI_ERR_SPAWN: they could not be started, and none runs.
Error SpawnGroup(const SpawnOrder* order, int root, Comm& comm, std::vector<int>* errors, Ref<Comm>* made);

// Collective over MPI_COMM_WORLD, in MPI_Init: where this job was spawned, makes the intercommunicator with the parents, else null.
Error MeetParents(Ref<Comm>* parents);
// Before MPI_Comm_disconnect waits for the others on `comm`: where that is the last communicator of this process with jobs that its parents are of, the
// launcher is told that the two jobs are apart. Told before, it knows of it at all ranks once the wait is over anywhere.
void LeaveParents(const Comm& comm);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DYNAMIC_SPAWN_H_
