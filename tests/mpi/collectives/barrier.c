/* MPI_Barrier: nobody leaves before the last has come. */
#include "tests/mpi/check.h"

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  /* Clocks of one host agree: the latest entry lies before the earliest exit. */
  for (int late = 0; late < world_size; late++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == late) {
      for (double start = MPI_Wtime(); MPI_Wtime() - start < 0.01;) {
      }
    }
    double entered = MPI_Wtime(), left, latest, earliest;
    MPI_Barrier(MPI_COMM_WORLD);
    left = MPI_Wtime();
    MPI_Allreduce(&entered, &latest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&left, &earliest, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    CHECK(latest <= earliest);
  }
  for (int i = 0; i < 200; i++) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_SELF);
  return End();
}
