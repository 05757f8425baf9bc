/* All ranks put to all and fence, ten times, over one window; then nothing more happens. Rank 0 prints what the window costs in memory for
 * each peer: "KiB per window peer: N". The first argument is the most that is allowed (default: no limit). */
#include <unistd.h>

#include "tests/mpi/check.h"

/* Of this process, that nobody shares with it. */
static double PrivateKib(void) {
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  char line[200];
  double total = 0, value;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "Private_Clean: %lf", &value) == 1 || sscanf(line, "Private_Dirty: %lf", &value) == 1) total += value;
  }
  if (file != NULL) fclose(file);
  return total;
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  const double limit = argc > 1 ? atof(argv[1]) : 0;
  /* A window over this rank alone: what a window costs whomever it is shared with. All ranks have talked to all others before. */
  int *memory, *alone;
  MPI_Win self, win;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &alone, &self);
  MPI_Win_fence(0, self);
  int* values = calloc((size_t)world_size, sizeof(int));
  MPI_Alltoall(values, 1, MPI_INT, calloc((size_t)world_size, sizeof(int)), 1, MPI_INT, MPI_COMM_WORLD);
  const double before = PrivateKib();

  MPI_Win_allocate((MPI_Aint)sizeof(int) * world_size, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_fence(0, win);
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < world_size; i++) {
      const int rank = (world_rank + i) % world_size;
      values[rank] = 1000000 * round + 1000 * world_rank + rank;
      MPI_Put(&values[rank], 1, MPI_INT, rank, world_rank, 1, MPI_INT, win);
    }
    MPI_Win_fence(0, win);
    for (int rank = 0; rank < world_size; rank++) CHECK_EQ(memory[rank], 1000000 * round + 1000 * rank + world_rank);
    MPI_Win_fence(0, win);
  }

  double mine = world_size == 1 ? 0 : (PrivateKib() - before) / (world_size - 1), most;
  MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (world_rank == 0) {
    printf("KiB per window peer: %.1f\n", most);
    if (limit > 0 && most > limit) REPORT("a window peer takes %.1f KiB, more than %.0f", most, limit);
  }
  MPI_Win_free(&win);
  MPI_Win_free(&self);
  free(values);
  return End();
}
