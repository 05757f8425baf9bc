/* Threads that make, use and free windows of the same ranks at once, each over its own communicator and in an order that differs between ranks. Each
 * keeps some while it makes others. What one thread puts never shows in a window of another (MPI 4.0 sections 11.6, 12.2). */
#include "tests/mpi/threads/threads.h"

enum { kRounds = 12, kKept = 3, kMostLongs = 9000 };

typedef struct {
  MPI_Win win;
  long* memory;
  long longs, value; /* how many; what the left neighbour wrote */
} Made;

static MPI_Comm parents[kThreads];
static pthread_mutex_t report = PTHREAD_MUTEX_INITIALIZER;

static void Expect(long actual, long expected, const char* what) {
  if (actual == expected) return;
  pthread_mutex_lock(&report);
  REPORT("%s is %ld, not %ld", what, actual, expected);
  pthread_mutex_unlock(&report);
}

static long Value(int rank, int thread, int round) { return 1000000L * (rank + 1) + 1000L * thread + round; }

/* All of it is written by the left neighbour. (Sixteen bytes at least: of two ranks that allocate eight, MPICH 4.0.2 writes into the wrong place.) */
static void Make(Made* made, int thread, int round) {
  static const long lengths[] = {2, 600, kMostLongs, 4};
  long from[kMostLongs];
  made->longs = lengths[round % 4];
  made->value = Value((world_rank + world_size - 1) % world_size, thread, round);
  MPI_Win_allocate(made->longs * (MPI_Aint)sizeof(long), sizeof(long), MPI_INFO_NULL, parents[thread], &made->memory, &made->win);
  for (long i = 0; i < made->longs; i++) from[i] = Value(world_rank, thread, round);
  MPI_Win_fence(0, made->win);
  MPI_Put(from, (int)made->longs, MPI_LONG, (world_rank + 1) % world_size, 0, (int)made->longs, MPI_LONG, made->win);
  MPI_Win_fence(0, made->win);
}

static void CheckAndFree(Made* made) {
  Expect(made->memory[0], made->value, "the first element");
  Expect(made->memory[made->longs / 2], made->value, "the one in the middle");
  Expect(made->memory[made->longs - 1], made->value, "the last element");
  MPI_Win_free(&made->win);
}

static void Body(int number) {
  const int thread = world_rank % 2 ? kThreads - 1 - number : number;
  Made kept[kKept];
  for (int round = 0; round < kRounds; round++) {
    Made* made = &kept[(round * (thread + 1)) % kKept];
    if (round < kKept) made = &kept[round];
    if (round >= kKept) CheckAndFree(made);
    Make(made, thread, round);
  }
  for (int i = 0; i < kKept; i++) CheckAndFree(&kept[i]);
}

int main(int argc, char** argv) {
  BeginThreads(&argc, &argv);
  for (int t = 0; t < kThreads; t++) MPI_Comm_dup(MPI_COMM_WORLD, &parents[t]);
  InThreads(Body);
  for (int t = 0; t < kThreads; t++) MPI_Comm_free(&parents[t]);
  return End();
}
