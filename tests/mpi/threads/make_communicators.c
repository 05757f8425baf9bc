/* Threads that make communicators at once on different parents, in an order that differs between ranks (MPI 4.0
 * section 11.6). */
#include <pthread.h>

#include "tests/mpi/check.h"

enum { kThreads = 3, kRounds = 8 };

static MPI_Comm parents[kThreads];
static pthread_mutex_t report = PTHREAD_MUTEX_INITIALIZER;

static void Expect(int actual, int expected, const char* what) {
  if (actual == expected) return;
  pthread_mutex_lock(&report);
  REPORT("%s is %d, not %d", what, actual, expected);
  pthread_mutex_unlock(&report);
}

static void* Run(void* argument) {
  const int thread = (int)(size_t)argument;
  for (int round = 0; round < kRounds; round++) {
    MPI_Comm made[3];
    MPI_Group group;
    MPI_Comm_dup(parents[thread], &made[0]);
    MPI_Comm_split(parents[thread], 0, -world_rank, &made[1]);
    MPI_Comm_group(parents[thread], &group);
    MPI_Comm_create_group(parents[thread], group, thread, &made[2]);
    MPI_Group_free(&group);
    for (int i = 0; i < 3; i++) {
      int out = 1000 * thread + 10 * round + i, in = -1, highest = -1, rank;
      MPI_Comm_rank(made[i], &rank);
      const int right = (rank + 1) % world_size, left = (rank + world_size - 1) % world_size;
      MPI_Sendrecv(&out, 1, MPI_INT, right, 0, &in, 1, MPI_INT, left, 0, made[i], MPI_STATUS_IGNORE);
      Expect(in, out, "what the left neighbour's same thread sent");
      MPI_Allreduce(&out, &highest, 1, MPI_INT, MPI_MAX, made[i]);
      Expect(highest, out, "the highest value of this thread at all ranks");
    }
    for (int i = 0; i < 3; i++) MPI_Comm_free(&made[i]);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
  for (int i = 0; i < kThreads; i++) MPI_Comm_dup(MPI_COMM_WORLD, &parents[i]);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; i++) {
    const int which = world_rank % 2 ? kThreads - 1 - i : i;
    pthread_create(&threads[i], NULL, Run, (void*)(size_t)which);
  }
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; i++) MPI_Comm_free(&parents[i]);
  return End();
}
