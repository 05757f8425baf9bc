/* Every rank locks several targets, or several windows of one target, in the same order, and uses them in another: ordered locks cannot wait
 * for one another in a ring. */
#include "tests/mpi/check.h"

enum { kTimes = 100 };

static void AddOne(int target, MPI_Win win) {
  long value;
  MPI_Get(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win);
  MPI_Win_flush(target, win);
  value++;
  MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win);
  MPI_Win_flush(target, win);
}

/* `turned`: the odd ranks use the last one first. */
static void LockAllTargets(MPI_Win win, int turned) {
  for (int time = 0; time < kTimes; time++) {
    for (int target = 0; target < world_size; target++) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    for (int i = 0; i < world_size; i++) AddOne(turned && world_rank % 2 ? world_size - 1 - i : i, win);
    for (int target = world_size - 1; target >= 0; target--) MPI_Win_unlock(target, win);
  }
}

/* Of a rank that is none of those that lock, if there are three. */
static void LockBothWindows(const MPI_Win* wins) {
  const int target = world_size - 1;
  for (int time = 0; time < kTimes; time++) {
    for (int i = 0; i < 2; i++) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, wins[i]);
    for (int i = 0; i < 2; i++) AddOne(target, wins[world_rank % 2 ? 1 - i : i]);
    for (int i = 0; i < 2; i++) MPI_Win_unlock(target, wins[i]);
  }
}

/* The only operation of each epoch, and the epochs end in the other order. */
static void LockForOneOperation(MPI_Win win) {
  const long one = 1;
  for (int time = 0; time < kTimes; time++) {
    for (int target = 0; target < world_size; target++) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
      MPI_Accumulate(&one, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win);
    }
    for (int target = world_size - 1; target >= 0; target--) MPI_Win_unlock(target, win);
  }
}

static void CheckAndClear(long expected, long* memory, MPI_Win win) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
  CHECK_EQ(*memory, expected);
  *memory = 0;
  MPI_Win_unlock(world_rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  if (MpichDeviates("takes one's own lock at once and the others with the first operation, and waits for ever")) return End();
  MPI_Win wins[2];
  long* memory[2];
  for (int i = 0; i < 2; i++) {
    MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory[i], &wins[i]);
    *memory[i] = 0;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int turned = 0; turned < 2; turned++) {
    LockAllTargets(wins[0], turned);
    CheckAndClear((long)kTimes * world_size, memory[0], wins[0]);
  }
  LockForOneOperation(wins[0]);
  CheckAndClear((long)kTimes * world_size, memory[0], wins[0]);
  if (world_size < 3 || world_rank < world_size - 1) LockBothWindows(wins);
  const int lockers = world_size < 3 ? world_size : world_size - 1;
  for (int i = 0; i < 2; i++) {
    CheckAndClear(world_rank == world_size - 1 ? (long)kTimes * lockers : 0, memory[i], wins[i]);
    MPI_Win_free(&wins[i]);
  }
  return End();
}
