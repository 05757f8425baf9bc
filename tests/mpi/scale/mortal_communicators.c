/* Rank 1 dies; the others free communicators that it had, too, in whose collectives it took part. Rank 0 prints how many pages of the host's memory
 * they had and how many of these stay. The launcher lets the others live. */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "tests/mpi/check.h"
#include "tests/mpi/host_memory.h"

enum { kCommunicators = 40 };
static const double kSeconds = 10; /* for the last to free them */

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm comms[kCommunicators];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  const long before = HostPages();
  for (int i = 0; i < kCommunicators; i++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    MPI_Barrier(comms[i]);
  }
  const long with = HostPages() - before;
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 1) raise(SIGKILL);
  while (MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS) {
  }
  for (int i = 0; i < kCommunicators; i++) MPI_Comm_free(&comms[i]);
  long left = HostPages() - before;
  for (const double start = MPI_Wtime(); world_rank == 0 && left >= with / 4 && MPI_Wtime() - start < kSeconds; left = HostPages() - before) {
  }
  if (world_rank == 0) printf("rank 0: %ld pages, %ld stay\n", with, left);
  fflush(NULL);
  _exit(0);
}
