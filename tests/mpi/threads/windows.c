/* One-sided communication from four threads: a window for each, then one for all under lock_all with atomic counters. */
#include "tests/mpi/threads/threads.h"

static MPI_Win wins[kThreads], common;
static long* memory[kThreads];

static void OwnWindow(int t) {
  for (int i = 0; i < 20; i++) {
    long value = world_rank * 1000 + t * 100 + i, got = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, Right(), 0, wins[t]);
    MPI_Put(&value, 1, MPI_LONG, Right(), 5, 1, MPI_LONG, wins[t]);
    MPI_Win_flush(Right(), wins[t]);
    MPI_Get(&got, 1, MPI_LONG, Right(), 5, 1, MPI_LONG, wins[t]);
    MPI_Win_unlock(Right(), wins[t]);
    CHECK_EQ(got, value);
  }
}

static void CommonCounter(int t) {
  static const long one = 1; /* accumulates read it until MPI_Win_unlock_all, when this function is left */
  long was;
  for (int i = 0; i < 50; i++) {
    MPI_Fetch_and_op(&one, &was, MPI_LONG, 0, 0, MPI_SUM, common);
    MPI_Win_flush(0, common);
    MPI_Accumulate(&one, 1, MPI_LONG, i % world_size, 1 + t, 1, MPI_LONG, MPI_SUM, common);
  }
}

int main(int argc, char** argv) {
  BeginThreads(&argc, &argv);
  for (int t = 0; t < kThreads; t++) MPI_Win_allocate(100 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory[t], &wins[t]);
  InThreads(OwnWindow);
  for (int t = 0; t < kThreads; t++) MPI_Win_free(&wins[t]);
  long* base;
  MPI_Win_allocate(16 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &common);
  memset(base, 0, 16 * sizeof(long));
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, common);
  InThreads(CommonCounter);
  MPI_Win_unlock_all(common);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, common);
  if (world_rank == 0) CHECK_EQ(base[0], 50 * kThreads * world_size);
  for (int t = 0; t < kThreads; t++) CHECK_EQ(base[1 + t], (50 / world_size + (world_rank < 50 % world_size)) * world_size);
  MPI_Win_unlock(world_rank, common);
  MPI_Win_free(&common);
  return End();
}
