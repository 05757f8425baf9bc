/* Atomic operations on integers of eight bytes, which may be the RNIC's, among accumulates that are not (MPI 4.0 section 12.7.1): atomicity of each
 * element, and the order of one origin's operations on one location. */
#include <stdint.h>

#include "tests/mpi/check.h"

enum { kWords = 64, kRounds = 150 };

static MPI_Win MakeWindow(int allocates, int64_t** memory) {
  MPI_Win win;
  if (allocates) {
    MPI_Win_allocate(kWords * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, memory, &win);
  } else {
    *memory = malloc(kWords * sizeof(int64_t));
    MPI_Win_create(*memory, kWords * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  }
  memset(*memory, 0, kWords * sizeof(int64_t));
  MPI_Barrier(MPI_COMM_WORLD);
  return win;
}

static void EndWindow(int allocates, int64_t* memory, MPI_Win* win) {
  MPI_Win_free(win);
  if (!allocates) free(memory);
}

/* Each word of each rank is raised in four ways by all ranks; none gets lost. */
static void AddUp(int allocates) {
  int64_t *memory, one = 1, ones[kWords], before, expected, wanted;
  MPI_Win win = MakeWindow(allocates, &memory);
  for (int i = 0; i < kWords; i++) ones[i] = 1;
  MPI_Win_lock_all(0, win);
  for (int round = 0; round < kRounds; round++) {
    for (int target = 0; target < world_size; target++) {
      MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, 0, MPI_SUM, win);
      MPI_Accumulate(ones, kWords, MPI_INT64_T, target, 0, kWords, MPI_INT64_T, MPI_SUM, win);
      MPI_Accumulate(&one, 1, MPI_INT64_T, target, round % kWords, 1, MPI_INT64_T, MPI_SUM, win);
      MPI_Win_flush(target, win);
      for (expected = before;; expected = before) {
        wanted = expected + 1;
        MPI_Compare_and_swap(&wanted, &expected, &before, MPI_INT64_T, target, 0, win);
        MPI_Win_flush(target, win);
        if (before == expected) break;
      }
    }
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, win);
  for (int i = 0; i < kWords; i++) {
    const int extra = kRounds / kWords + (i < kRounds % kWords);
    CHECK_EQ(memory[i], (int64_t)world_size * (kRounds + extra + (i == 0 ? 2 * kRounds : 0)));
  }
  MPI_Win_unlock(world_rank, win);
  EndWindow(allocates, memory, &win);
}

/* What one origin does to a word it does in the order of the calls, by messages or not. */
static void InOrder(int allocates) {
  int64_t *memory, words[kWords], got[8], one = 1, value;
  const int64_t hundred = 100;
  MPI_Win win = MakeWindow(allocates, &memory);
  for (int i = 0; i < kWords; i++) words[i] = 7;
  const int target = (world_rank + 1) % world_size;
  MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
  for (int round = 0; round < kRounds; round++) {
    value = 1000 * round;
    MPI_Accumulate(&value, 1, MPI_INT64_T, target, 3, 1, MPI_INT64_T, MPI_REPLACE, win);
    MPI_Fetch_and_op(&one, &got[0], MPI_INT64_T, target, 3, MPI_SUM, win);
    MPI_Accumulate(words, kWords, MPI_INT64_T, target, 0, kWords, MPI_INT64_T, MPI_SUM, win);
    MPI_Fetch_and_op(&one, &got[1], MPI_INT64_T, target, 3, MPI_SUM, win);
    MPI_Fetch_and_op(&hundred, &got[2], MPI_INT64_T, target, 3, MPI_SUM, win);
    MPI_Get_accumulate(words, 1, MPI_INT64_T, &got[3], 1, MPI_INT64_T, target, 3, 1, MPI_INT64_T, MPI_MAX, win);
    MPI_Fetch_and_op(NULL, &got[4], MPI_INT64_T, target, 3, MPI_NO_OP, win);
    if (round % 3 == 0) MPI_Win_flush_local(target, win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, target, 3, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Fetch_and_op(&one, &got[5], MPI_INT64_T, target, 3, MPI_REPLACE, win);
    MPI_Win_flush(target, win);
    const int64_t after = 1000 * round + 1 + 7;
    CHECK_EQ(got[0], 1000 * round);
    CHECK_EQ(got[1], after);
    CHECK_EQ(got[2], after + 1);
    CHECK_EQ(got[3], after + 101);
    CHECK_EQ(got[4], after + 101);
    CHECK_EQ(got[5], after + 102);
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
  CHECK_EQ(memory[3], 1);
  CHECK_EQ(memory[kWords - 1], 7 * kRounds);
  MPI_Win_unlock(world_rank, win);
  EndWindow(allocates, memory, &win);
}

/* Requests, exclusive locks, many before a flush, and results in pieces. */
static void Forms(int allocates) {
  int64_t *memory, many[100], one = 1, before;
  MPI_Win win = MakeWindow(allocates, &memory);
  const int target = (world_rank + world_size - 1) % world_size;
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < 100; i++) MPI_Fetch_and_op(&one, &many[i], MPI_INT64_T, target, 1, MPI_SUM, win);
  MPI_Win_flush_local(target, win);
  for (int i = 0; i < 100; i++) CHECK_EQ(many[i], i);
  MPI_Request requests[3];
  MPI_Raccumulate(&one, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, MPI_SUM, win, &requests[0]);
  MPI_Rget_accumulate(&one, 1, MPI_INT64_T, &many[0], 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, MPI_SUM, win, &requests[1]);
  MPI_Rget_accumulate(NULL, 0, MPI_INT64_T, &many[1], 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, MPI_NO_OP, win, &requests[2]);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  CHECK_EQ(many[0], 101);
  CHECK_EQ(many[1], 102);

  int32_t halves[4] = {-1, -1, -1, -1};
  const int32_t parts[4] = {5, 0, 0, 0};
  MPI_Datatype apart;
  MPI_Type_vector(2, 1, 2, MPI_INT32_T, &apart);
  MPI_Type_commit(&apart);
  MPI_Get_accumulate(parts, 1, apart, halves, 1, apart, target, 2, 2, MPI_INT32_T, MPI_SUM, win);
  MPI_Win_flush(target, win);
  CHECK_EQ(halves[0], 0);
  CHECK_EQ(halves[1], -1);
  MPI_Type_free(&apart);
  MPI_Win_unlock_all(win);

  uint64_t most = UINT64_MAX, found;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
  MPI_Fetch_and_op(&most, &found, MPI_UINT64_T, target, 4, MPI_SUM, win);
  MPI_Win_flush(target, win);
  CHECK_EQ(found, 0);
  MPI_Fetch_and_op(&most, &found, MPI_UINT64_T, target, 4, MPI_SUM, win);
  MPI_Win_unlock(target, win);
  CHECK(found == UINT64_MAX);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win); /* one operation */
  MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, 4, MPI_SUM, win);
  MPI_Win_unlock(target, win);
  CHECK_EQ(before, -2);
  MPI_Win_fence(0, win);
  MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, 5, MPI_SUM, win);
  MPI_Win_fence(0, win);
  CHECK_EQ(before, 0);
  CHECK_EQ(memory[5], 1);
  EndWindow(allocates, memory, &win);
}

/* Words that are not aligned. */
static void Misaligned(void) {
  char* memory;
  MPI_Win win;
  MPI_Win_allocate(kWords, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  memset(memory, 0, kWords);
  MPI_Barrier(MPI_COMM_WORLD);
  int64_t one = 1, before;
  MPI_Win_lock_all(0, win);
  for (int round = 0; round < 20; round++) MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 4, MPI_SUM, win);
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) {
    int64_t sum;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    memcpy(&sum, memory + 4, sizeof sum);
    MPI_Win_unlock(0, win);
    CHECK_EQ(sum, 20 * world_size);
  }
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  for (int allocates = 0; allocates < 2; allocates++) {
    AddUp(allocates);
    InOrder(allocates);
    Forms(allocates);
  }
  Misaligned();
  return End();
}
