/* MPI 4.0 section 12.5.3: epochs of MPI_Win_lock that hold one operation, two, or none, all ranks at once, with others that hold the lock
 * longer. Libraries may send lock, operation and unlock together; what is seen is the same. */
#include "tests/mpi/check.h"

enum { kRounds = 40, kBig = 5000 };

static MPI_Win win;
static long *memory; /* [0] sum, [1] counter of fetches, [2] maximum, [3] swapped; [8 + rank] a place for each; then kBig */

static void Single(int target, int kind, int round, int lock) {
  long one = 1, mine = world_rank * 1000 + round, got = -1;
  MPI_Win_lock(lock, target, 0, win);
  switch (kind) {
    case 0:
      MPI_Accumulate(&one, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win);
      break;
    case 1:
      MPI_Fetch_and_op(&one, &got, MPI_LONG, target, 1, MPI_SUM, win);
      break;
    case 2:
      MPI_Put(&mine, 1, MPI_LONG, target, 8 + world_rank, 1, MPI_LONG, win);
      break;
    case 3:
      MPI_Get(&got, 1, MPI_LONG, target, 8 + world_rank, 1, MPI_LONG, win);
      break;
  }
  MPI_Win_unlock(target, win);
  if (kind == 1) CHECK(got >= 0 && got < (long)kRounds * world_size);
  if (kind == 3) CHECK_EQ(got, mine);
}

/* Nothing else may happen between the two. */
static void ReadThenWrite(int target) {
  long value;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
  MPI_Get(&value, 1, MPI_LONG, target, 2, 1, MPI_LONG, win);
  MPI_Win_flush(target, win);
  ++value;
  MPI_Put(&value, 1, MPI_LONG, target, 2, 1, MPI_LONG, win);
  MPI_Win_unlock(target, win);
}

static void CompareThenSwap(int target) {
  for (long expected = 0;;) {
    long next = expected + 1, found;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    MPI_Compare_and_swap(&next, &expected, &found, MPI_LONG, target, 3, win);
    MPI_Win_unlock(target, win);
    if (found == expected) return;
    expected = found;
  }
}

static void Sizes(int target) {
  static long out[kBig], in[kBig];
  const int sizes[] = {0, 1, 100, 1023, 1024, 1025, 2047, kBig};
  for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    const int n = sizes[i];
    for (int j = 0; j < n; ++j) out[j] = world_rank * 100000L + i * 10000L + j;
    memset(in, 0xff, sizeof in);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    MPI_Put(out, n, MPI_LONG, target, 8 + world_size, n, MPI_LONG, win);
    MPI_Win_flush_local(target, win);
    MPI_Win_flush(target, win);
    MPI_Get(in, n, MPI_LONG, target, 8 + world_size, n, MPI_LONG, win);
    MPI_Win_unlock(target, win);
    CHECK(memcmp(in, out, sizeof(long) * n) == 0);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    MPI_Put(out, n, MPI_LONG, target, 8 + world_size, n, MPI_LONG, win);
    MPI_Win_unlock(target, win); /* others write the same place meanwhile: only that it ends is checked */
  }
}

int main(int argc, char **argv) {
  Begin(&argc, &argv);
  MPI_Win_allocate((8 + world_size + kBig) * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, win);
  memset(memory, 0, (8 + world_size + kBig) * sizeof(long));
  MPI_Win_unlock(world_rank, win);
  MPI_Barrier(MPI_COMM_WORLD);

  for (int round = 0; round < kRounds; ++round) {
    Single(0, 0, round, MPI_LOCK_SHARED);
    Single(0, 1, round, round % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE);
    Single(0, 2, round, MPI_LOCK_EXCLUSIVE);
    Single(0, 3, round, MPI_LOCK_SHARED);
    ReadThenWrite(0);
    CompareThenSwap(0);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win); /* nothing in it */
    MPI_Win_unlock(0, win);
  }
  Sizes(0);
  Sizes((world_rank + 1) % world_size);

  /* Several locks at a time; a flush ends the wait for company. */
  long mine = 77 + world_rank;
  for (int target = 0; target < world_size; ++target) MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
  for (int target = 0; target < world_size; ++target) MPI_Put(&mine, 1, MPI_LONG, target, 8 + world_rank, 1, MPI_LONG, win);
  MPI_Win_flush_all(win);
  for (int target = 0; target < world_size; ++target) {
    long got = 0;
    MPI_Get(&got, 1, MPI_LONG, target, 8 + world_rank, 1, MPI_LONG, win);
    MPI_Win_flush(target, win);
    CHECK_EQ(got, mine);
    MPI_Win_unlock(target, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) {
    const long all = (long)kRounds * world_size;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    for (int i = 0; i < 4; ++i) CHECK_EQ(memory[i], all);
    for (int rank = 0; rank < world_size; ++rank) CHECK_EQ(memory[8 + rank], 77 + rank);
    MPI_Win_unlock(0, win);
  }
  MPI_Win_free(&win);
  return End();
}
