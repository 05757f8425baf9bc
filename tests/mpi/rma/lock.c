/* Passive target (MPI 4.0 section 12.5.3): exclusive locks exclude, shared ones do not, data is there after unlock, flush completes. */
#include "tests/mpi/check.h"

/* Everyone adds to two words at rank 0 by get, local addition and put under an exclusive lock: nothing is lost, the words agree. */
static void ExclusiveLocksExclude(void) {
  enum { kTimes = 50 };
  int *memory, pair[2];
  MPI_Win win;
  MPI_Win_allocate(64 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  memory[0] = memory[1] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kTimes; i++) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(pair, 2, MPI_INT, 0, 0, 2, MPI_INT, win);
    MPI_Win_flush(0, win);
    CHECK_EQ(pair[0], pair[1]);
    pair[0]++;
    pair[1]++;
    MPI_Put(&pair[0], 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
    MPI_Put(&pair[1], 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    CHECK_EQ(memory[0], kTimes * world_size);
    CHECK_EQ(memory[1], kTimes * world_size);
    MPI_Win_unlock(0, win);
  }
  MPI_Win_free(&win);
}

/* Two ranks hold a shared lock on the same target at once: each waits for the other inside. */
static void SharedLocksShare(void) {
  if (world_size < 2) return;
  int* memory;
  MPI_Win win;
  MPI_Win_allocate(sizeof(int) * 64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  *memory = 77;
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank < 2) {
    int value = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Sendrecv(NULL, 0, MPI_INT, 1 - world_rank, 0, NULL, 0, MPI_INT, 1 - world_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_unlock(0, win);
    CHECK_EQ(value, 77);
  }
  MPI_Win_free(&win);
}

/* After unlock the data is at the target: a message sent afterwards finds it there. */
static void UnlockCompletes(void) {
  enum { kCount = 20000 };
  int *memory, *out = malloc(sizeof(int) * kCount);
  MPI_Win win;
  MPI_Win_allocate(sizeof(int) * kCount * world_size, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  for (int round = 0; round < 10; round++) {
    const int right = Right(), count = round % 2 ? kCount : 1;
    for (int i = 0; i < count; i++) out[i] = world_rank * 1000 + round * 100000 + i;
    const int unchecked = round % 4 == 3 && !MpichDeviates("a lock of a rank's own window with MPI_MODE_NOCHECK stays held");
    MPI_Win_lock(round % 3 == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, right, unchecked ? MPI_MODE_NOCHECK : 0, win);
    MPI_Put(out, count, MPI_INT, right, world_rank * kCount, count, MPI_INT, win);
    MPI_Win_unlock(right, win);
    MPI_Sendrecv(NULL, 0, MPI_INT, right, 0, NULL, 0, MPI_INT, Left(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
    for (int i = 0; i < count; i++) CHECK_EQ(memory[Left() * kCount + i], Left() * 1000 + round * 100000 + i);
    MPI_Win_unlock(world_rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  free(out);
  MPI_Win_free(&win);
}

/* Lock all, flushes of every kind, one rank and all. */
static void LockAllAndFlush(void) {
  int *memory, *mine = malloc(sizeof(int) * world_size), got = -1;
  MPI_Win win;
  MPI_Win_allocate(sizeof(int) * 64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_lock_all(0, win);
  for (int r = 0; r < world_size; r++) memory[r] = -1;
  MPI_Win_sync(win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < 20; round++) {
    for (int r = 0; r < world_size; r++) {
      mine[r] = world_rank * 100 + round;
      MPI_Put(&mine[r], 1, MPI_INT, r, world_rank, 1, MPI_INT, win);
    }
    MPI_Win_flush_local_all(win);
    for (int r = 0; r < world_size; r++) mine[r] = -5;  /* the origin's buffer is free again */
    MPI_Win_flush_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    for (int r = 0; r < world_size; r++) CHECK_EQ(memory[r], r * 100 + round);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Get(&got, 1, MPI_INT, Right(), Left(), 1, MPI_INT, win);
    MPI_Win_flush_local(Right(), win);
    CHECK_EQ(got, Left() * 100 + round);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  free(mine);
}

/* Several targets locked at once. */
static void ManyLocks(void) {
  int* memory;
  MPI_Win win;
  MPI_Win_allocate(sizeof(int) * 64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int r = 0; r < world_size; r++) MPI_Win_lock(MPI_LOCK_SHARED, r, 0, win);
  for (int r = world_size - 1; r >= 0; r--) MPI_Put(&world_rank, 1, MPI_INT, r, world_rank, 1, MPI_INT, win);
  for (int r = 0; r < world_size; r++) MPI_Win_unlock(r, win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
  for (int r = 0; r < world_size; r++) CHECK_EQ(memory[r], r);
  MPI_Win_unlock(world_rank, win);
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  ExclusiveLocksExclude();
  SharedLocksShare();
  UnlockCompletes();
  LockAllAndFlush();
  ManyLocks();
  return End();
}
