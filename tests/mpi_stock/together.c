/* Preloaded into coarray programs whose images change a neighbour's coarray with no synchronization since that image gave it its initial value: nobody
 * gets anything before all images have come to their first Get. What the library's startup does with windows is done by all before. */
#include <mpi.h>

int MPI_Get(void* origin, int count, MPI_Datatype type, int target, MPI_Aint displacement, int target_count, MPI_Datatype target_type, MPI_Win window) {
  static int met;
  if (!met) {
    met = 1;
    PMPI_Barrier(MPI_COMM_WORLD);
  }
  return PMPI_Get(origin, count, type, target, displacement, target_count, target_type, window);
}
