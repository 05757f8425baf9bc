#ifndef MPI_HYBRID_DYNAMIC_PARTING_H_
#define MPI_HYBRID_DYNAMIC_PARTING_H_

namespace weft::mpi {

// Removes all state of processes of other jobs that no communicator contains any more. Their connections for messages
// and windows are closed while progress is made, and their numbers in the process table become free. Call this before
// the first such process is known.
void StartParting();
// Waits until that has been done for all of them. A peer that does not cooperate delays it by a few seconds.
void AwaitParting();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DYNAMIC_PARTING_H_
