/* A thread of each rank takes part in collectives and fences with the other ranks, while another waits for a message that comes when they are over.
 * Argument: how many (100). */
#include <string.h>

#include "tests/mpi/threads/threads.h"

static MPI_Comm beside;
static MPI_Win win;
static int rounds;

static void* Collectives(void* unused) {
  for (int i = 0; i < rounds; i++) {
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, beside);
    CHECK_EQ(sum, world_size);
    MPI_Barrier(beside);
    MPI_Win_fence(0, win);
  }
  MPI_Send(&rounds, 1, MPI_INT, world_rank, 7, MPI_COMM_WORLD);
  return unused;
}

int main(int argc, char** argv) {
  BeginThreads(&argc, &argv);
  rounds = argc > 1 ? atoi(argv[1]) : 100;
  long* memory;
  MPI_Comm_dup(MPI_COMM_WORLD, &beside);
  MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  pthread_t thread;
  pthread_create(&thread, NULL, Collectives, NULL);
  int got = 0;
  MPI_Recv(&got, 1, MPI_INT, world_rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(got, rounds);
  pthread_join(thread, NULL);
  MPI_Win_free(&win);
  MPI_Comm_free(&beside);
  return End();
}
