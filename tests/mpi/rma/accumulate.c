/* Accumulate, Get_accumulate, Fetch_and_op, Compare_and_swap (MPI 4.0 section 12.3.4): operations, types, atomicity and order. */
#include <stdint.h>

#include "tests/mpi/check.h"

enum { kCount = 300 };

/* Everyone accumulates into rank 0 under fence; `combine` is applied to a and b. */
#define TRY(type, mpi_type, op, start, value, combine)                                                       \
  do {                                                                                                       \
    type *memory, out[kCount];                                                                               \
    MPI_Win win;                                                                                             \
    MPI_Win_allocate(sizeof(type) * kCount, sizeof(type), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);     \
    for (int i = 0; i < kCount; i++) {                                                                       \
      const int r = world_rank + 0 * i;                                                                              \
      out[i] = (type)(value);                                                                                \
      memory[i] = (type)(start);                                                                             \
    }                                                                                                        \
    MPI_Win_fence(0, win);                                                                                   \
    MPI_Accumulate(out, kCount, mpi_type, 0, 0, kCount, mpi_type, op, win);                                  \
    MPI_Win_fence(0, win);                                                                                   \
    for (int i = 0; i < kCount && world_rank == 0; i++) {                                                    \
      type a = (type)(start);                                                                                \
      for (int r = 0; r < world_size; r++) {                                                                 \
        const type b = (type)(value);                                                                        \
        a = (type)(combine);                                                                                 \
      }                                                                                                      \
      if (memory[i] != a) REPORT("%s %s at %d", #mpi_type, #op, i);                                          \
    }                                                                                                        \
    MPI_Win_free(&win);                                                                                      \
  } while (0)

static void Operations(void) {
  TRY(int, MPI_INT, MPI_SUM, i, r + i, a + b);
  TRY(int, MPI_INT, MPI_MAX, 3, (r * 7 + i) % 11, a > b ? a : b);
  TRY(int, MPI_INT, MPI_MIN, 6, (r * 7 + i) % 11, a < b ? a : b);
  TRY(int, MPI_INT, MPI_BAND, -1, ~(1 << r), a& b);
  TRY(int, MPI_INT, MPI_BOR, 0, 1 << r, a | b);
  TRY(int, MPI_INT, MPI_BXOR, i, r * 37, a ^ b);
  TRY(int, MPI_INT, MPI_LAND, 1, (r + i) % 3, a&& b);
  TRY(int, MPI_INT, MPI_LOR, 0, (r + i) % 3, a || b);
  TRY(int, MPI_INT, MPI_LXOR, 0, (r + i) % 2, !a != !b);
  TRY(long, MPI_LONG, MPI_PROD, 1, r + 1, a* b);
  TRY(double, MPI_DOUBLE, MPI_SUM, 0.5, r * 0.25 + i, a + b);
  TRY(float, MPI_FLOAT, MPI_MAX, 0, r + i, a > b ? a : b);
  TRY(int8_t, MPI_INT8_T, MPI_SUM, 1, r, a + b);
  TRY(uint16_t, MPI_UINT16_T, MPI_SUM, 60000, 1000 + r, a + b);
  TRY(uint64_t, MPI_UINT64_T, MPI_SUM, 1, (uint64_t)r << 40, a + b);
  TRY(long double, MPI_LONG_DOUBLE, MPI_SUM, 1, r, a + b);
}

/* Replace is a Put that keeps order with other accumulates: of two from one origin the later stays. */
static void ReplaceInOrder(void) {
  int *memory, values[100];
  MPI_Win win;
  MPI_Win_allocate(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  *memory = -1;
  MPI_Win_fence(0, win);
  if (world_rank == world_size - 1) {
    for (int i = 0; i < 100; i++) {
      values[i] = i;
      MPI_Accumulate(&values[i], 1, MPI_INT, 0, 0, 1, MPI_INT, i % 10 == 9 ? MPI_SUM : MPI_REPLACE, win);
    }
  }
  MPI_Win_fence(0, win);
  if (world_rank == 0) CHECK_EQ(*memory, 98 + 99);
  MPI_Win_free(&win);
}

/* A counter at rank 0 by Fetch_and_op: everyone gets other numbers, none is missing. */
static void Counter(void) {
  enum { kTimes = 100 };
  long *memory, one = 1, *mine = malloc(sizeof(long) * kTimes), last = -1;
  MPI_Win win;
  MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  *memory = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < kTimes; i++) {
    MPI_Fetch_and_op(&one, &mine[i], MPI_LONG, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
    CHECK(mine[i] > last);
    last = mine[i];
  }
  MPI_Win_unlock_all(win);
  long *all = malloc(sizeof(long) * kTimes * world_size);
  char *seen = calloc(kTimes * world_size, 1);
  MPI_Allgather(mine, kTimes, MPI_LONG, all, kTimes, MPI_LONG, MPI_COMM_WORLD);
  for (int i = 0; i < kTimes * world_size; i++) {
    CHECK(all[i] >= 0 && all[i] < kTimes * world_size);
    if (all[i] >= 0 && all[i] < kTimes * world_size) CHECK_EQ(seen[all[i]]++, 0);
  }
  free(mine), free(all), free(seen);
  MPI_Win_free(&win);
}

/* Fetch with other operations and types; NO_OP reads. */
static void FetchKinds(void) {
  struct {
    double d;
    int i;
    char c;
    short s;
  } * memory;
  MPI_Win win;
  MPI_Win_allocate(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  memory->d = 1.5, memory->i = 10, memory->c = 3, memory->s = -4;
  MPI_Barrier(MPI_COMM_WORLD);
  double d = 2.25, was_d = 0;
  int i = 99, was_i = 0;
  char c = 12, was_c = 0;
  short s = 100, was_s = 0;
  const int target = Right();
  MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
  MPI_Fetch_and_op(&d, &was_d, MPI_DOUBLE, target, 0, MPI_SUM, win);
  MPI_Fetch_and_op(&i, &was_i, MPI_INT, target, 8, MPI_REPLACE, win);
  MPI_Fetch_and_op(&c, &was_c, MPI_CHAR, target, 12, MPI_BOR, win);
  MPI_Fetch_and_op(&s, &was_s, MPI_SHORT, target, 14, MPI_MAX, win);
  MPI_Win_flush(target, win);
  CHECK_NEAR(was_d, 1.5, 0);
  CHECK_EQ(was_i, 10);
  CHECK_EQ(was_c, 3);
  CHECK_EQ(was_s, -4);
  MPI_Fetch_and_op(NULL, &was_d, MPI_DOUBLE, target, 0, MPI_NO_OP, win);
  MPI_Fetch_and_op(NULL, &was_i, MPI_INT, target, 8, MPI_NO_OP, win);
  MPI_Win_unlock(target, win);
  CHECK_NEAR(was_d, 3.75, 0);
  CHECK_EQ(was_i, 99);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
  CHECK_EQ(memory->c, 15);
  CHECK_EQ(memory->s, 100);
  MPI_Win_unlock(world_rank, win);
  MPI_Win_free(&win);
}

/* Compare_and_swap: a spin lock guards a counter that is read and written by Get and Put. */
static void SpinLock(void) {
  enum { kTimes = 20 };
  int *memory, zero = 0, one = 1, was, value;
  MPI_Win win;
  MPI_Win_allocate(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  memory[0] = memory[1] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < kTimes; i++) {
    do {
      MPI_Compare_and_swap(&one, &zero, &was, MPI_INT, 0, 0, win);
      MPI_Win_flush(0, win);
    } while (was != 0);
    MPI_Get(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
    value++;
    MPI_Put(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
    MPI_Accumulate(&zero, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_REPLACE, win);
    MPI_Win_flush(0, win);
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Get(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
  MPI_Win_unlock(0, win);
  CHECK_EQ(value, kTimes * world_size);
  /* A comparison that fails leaves the word alone. */
  MPI_Barrier(MPI_COMM_WORLD);
  int other = 123456;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Compare_and_swap(&one, &other, &was, MPI_INT, 0, 1, win);
  MPI_Win_unlock(0, win);
  CHECK_EQ(was, kTimes * world_size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    CHECK_EQ(memory[1], kTimes * world_size);
    MPI_Win_unlock(0, win);
  }
  MPI_Win_free(&win);
}

/* Get_accumulate: each element is fetched and combined at once, with derived types on all three sides. */
static void GetAccumulate(void) {
  enum { kEach = 1000 };
  int *memory, *out = malloc(sizeof(int) * 2 * kEach), *was = malloc(sizeof(int) * kEach);
  MPI_Win win;
  MPI_Datatype strided;
  MPI_Type_vector(kEach, 1, 2, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  MPI_Win_allocate(sizeof(int) * 2 * kEach, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  for (int i = 0; i < 2 * kEach; i++) memory[i] = i, out[i] = i % 2 == 0 ? 1000 + i : -1;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, Right(), 0, win);
  MPI_Get_accumulate(out, 1, strided, was, kEach, MPI_INT, Right(), 0, 1, strided, MPI_SUM, win);
  MPI_Win_unlock(Right(), win);
  for (int i = 0; i < kEach; i++) CHECK_EQ(was[i], 2 * i);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
  for (int i = 0; i < 2 * kEach; i++) CHECK_EQ(memory[i], i % 2 == 0 ? 2 * i + 1000 : i);
  MPI_Win_unlock(world_rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, Right(), 0, win);
  MPI_Get_accumulate(NULL, 0, MPI_INT, was, kEach, MPI_INT, Right(), 0, 1, strided, MPI_NO_OP, win);
  MPI_Win_unlock(Right(), win);
  for (int i = 0; i < kEach; i++) CHECK_EQ(was[i], 4 * i + 1000);
  MPI_Type_free(&strided);
  MPI_Win_free(&win);
  free(out), free(was);
}

/* Operations on one element, on few and on many at the same time, of all ranks on the same elements: each is atomic for each element. */
static void FewAndManyAtOnce(void) {
  enum { kMany = 6000, kRounds = 60 };
  long *memory, *ones = malloc(sizeof(long) * kMany), before;
  MPI_Win win;
  MPI_Datatype every_second;
  MPI_Type_vector(kMany / 2, 1, 2, MPI_LONG, &every_second);
  MPI_Type_commit(&every_second);
  MPI_Win_allocate(sizeof(long) * kMany, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  for (int i = 0; i < kMany; i++) memory[i] = 0, ones[i] = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  for (int round = 0; round < kRounds; round++) {
    MPI_Accumulate(ones, kMany, MPI_LONG, 0, 0, kMany, MPI_LONG, MPI_SUM, win);
    MPI_Fetch_and_op(ones, &before, MPI_LONG, 0, 0, MPI_SUM, win);
    MPI_Accumulate(ones, 2, MPI_LONG, 0, 0, 2, MPI_LONG, MPI_SUM, win);
    MPI_Accumulate(ones, kMany / 2, MPI_LONG, 0, 0, 1, every_second, MPI_SUM, win);
    for (int k = 0; k < 20; k++) MPI_Accumulate(ones, 1, MPI_LONG, 0, kMany - 1, 1, MPI_LONG, MPI_SUM, win);
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
  for (int i = 0; i < kMany && world_rank == 0; i++) {
    const int times = 1 + (i == 0) + (i < 2) + (i % 2 == 0) + (i == kMany - 1 ? 20 : 0);
    CHECK_EQ(memory[i], (long)times * kRounds * world_size);
  }
  MPI_Win_unlock(world_rank, win);
  MPI_Type_free(&every_second);
  MPI_Win_free(&win);
  free(ones);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  Operations();
  ReplaceInOrder();
  Counter();
  FetchKinds();
  SpinLock();
  GetAccumulate();
  FewAndManyAtOnce();
  return End();
}
