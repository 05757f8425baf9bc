#ifndef MPI_HYBRID_DYNAMIC_PARTING_H_
#define MPI_HYBRID_DYNAMIC_PARTING_H_

namespace weft::mpi {

// Sees to it that nothing is left of processes of other jobs that no communicator has any more: their connections for
// messages and for windows are closed as progress is made, and their numbers in the table of processes are free again.
// To be called before the first of them is known.
void StartParting();
// Waits until that is done for all of them; a peer that does not do its part holds it up for a few seconds.
void AwaitParting();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DYNAMIC_PARTING_H_
