/* Operations of one origin on one location take effect in the order of the calls, although only MPI_Win_flush_local stands between them. The
 * standard promises less; ARMCI, and with it Global Arrays and NWChem, stand on it. Between epochs the standard does promise it. */
#define _DEFAULT_SOURCE
#include <unistd.h>

#include "tests/mpi/check.h"

enum { kLarge = 20000 };

/* `target` computes meanwhile, or is inside MPI. */
static void Passive(int target, int large) {
  const int count = large ? kLarge : 1;
  int* memory;
  MPI_Win win;
  MPI_Win_allocate(sizeof(int) * kLarge, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  int *value = calloc(kLarge, sizeof(int)), *got = calloc(kLarge, sizeof(int));
  MPI_Win_lock_all(0, win);
  for (int round = 0; round < 60 && world_rank == 0; round++) {
    for (int i = 0; i < count; i++) value[i] = 3 * round;
    MPI_Put(value, count, MPI_INT, target, 0, count, MPI_INT, win);
    MPI_Win_flush_local(target, win);
    for (int i = 0; i < count; i++) value[i] = 1;
    MPI_Accumulate(value, count, MPI_INT, target, 0, count, MPI_INT, MPI_SUM, win);
    MPI_Win_flush_local(target, win);
    for (int i = 0; i < count; i++) got[i] = -1;
    MPI_Get(got, count, MPI_INT, target, 0, count, MPI_INT, win);
    MPI_Win_flush_local(target, win);
    CHECK_EQ(got[0], 3 * round + 1);
    CHECK_EQ(got[count - 1], 3 * round + 1);
    /* Many in a row, of both kinds; the last one counts. */
    for (int k = 0; k < 20; k++) {
      for (int i = 0; i < count; i++) value[i] = 1000 + k;
      MPI_Accumulate(value, count, MPI_INT, target, 0, count, MPI_INT, MPI_REPLACE, win);
      MPI_Win_flush_local(target, win);
      for (int i = 0; i < count; i++) value[i] = 2000 + k;
      for (int times = 0; times <= k % 8; times++) MPI_Put(value, count, MPI_INT, target, 0, count, MPI_INT, win);
      MPI_Win_flush_local(target, win);
    }
    MPI_Win_flush(target, win);
    MPI_Get(got, count, MPI_INT, target, 0, count, MPI_INT, win);
    MPI_Win_flush_local(target, win);
    CHECK_EQ(got[0], 2019);
    CHECK_EQ(got[count - 1], 2019);
  }
  MPI_Win_unlock_all(win);
  if (world_rank == 0) MPI_Send(NULL, 0, MPI_INT, target, 0, MPI_COMM_WORLD);
  if (world_rank == target) {
    for (int arrived = 0; !arrived;) {
      usleep(large ? 0 : 1000);
      MPI_Iprobe(0, 0, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
    }
    MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&win);
  free(value);
  free(got);
}

/* What one epoch accumulated, the next one's Get sees. */
static void AcrossFences(void) {
  int* memory;
  MPI_Win win;
  MPI_Win_allocate(sizeof(int) * kLarge, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  int *one = malloc(sizeof(int) * kLarge), *got = malloc(sizeof(int) * kLarge);
  for (int i = 0; i < kLarge; i++) {
    memory[i] = 0;
    one[i] = 1;
  }
  MPI_Win_fence(0, win);
  for (int round = 1; round <= 30; round++) {
    MPI_Accumulate(one, kLarge, MPI_INT, Right(), 0, kLarge, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    MPI_Get(got, kLarge, MPI_INT, Right(), 0, kLarge, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < kLarge; i++) CHECK_EQ(got[i], round);
  }
  MPI_Win_free(&win);
  free(one);
  free(got);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  AcrossFences();
  if (world_size > 1 && !MpichDeviates("MPICH's Gets may overtake its accumulates")) {
    Passive(1, 0);
    Passive(1, 1);
  }
  return End();
}
