/* Everybody accumulates at rank 0 at once, as many messages as may be under way, while that computes: its queues have
 * room for all of them. */
#include "tests/mpi/check.h"

#define ROUNDS 4
#define MESSAGES 64

static void Compute(double seconds) {
  const double end = MPI_Wtime() + seconds;
  while (MPI_Wtime() < end) continue;
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  long* memory;
  MPI_Win win;
  MPI_Win_allocate((MPI_Aint)sizeof(long) * 2, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  memory[0] = memory[1] = 0;
  MPI_Win_fence(0, win);
  long sum = 0;
  for (int round = 0; round < ROUNDS; round++) {
    if (world_rank == 0) {
      Compute(0.2);
    } else {
      const long mine[2] = {world_rank, 1};
      for (int i = 0; i < MESSAGES; i++) MPI_Accumulate(mine, 2, MPI_LONG, 0, 0, 2, MPI_LONG, MPI_SUM, win);
    }
    MPI_Win_fence(0, win);
    sum += (long)MESSAGES * world_size * (world_size - 1) / 2;
    if (world_rank == 0) {
      CHECK_EQ(memory[0], sum);
      CHECK_EQ(memory[1], (long)(round + 1) * MESSAGES * (world_size - 1));
    }
    MPI_Win_fence(0, win);
  }
  MPI_Win_free(&win);
  return End();
}
