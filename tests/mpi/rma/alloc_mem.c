/* Windows of MPI_Win_create over memory of MPI_Alloc_mem: all of it, parts, none, by each rank otherwise; several at once; memory that is given back
 * and allocated again; many allocations and many windows. */
#include <stdint.h>

#include "tests/mpi/check.h"

enum { kInts = 5000, kMany = 1000, kWindows = 40 };

static int* Allocate(size_t ints) {
  void* memory;
  CHECK_OK(MPI_Alloc_mem((MPI_Aint)(ints * sizeof(int)), MPI_INFO_NULL, &memory));
  for (size_t i = 0; i < ints; i++) ((int*)memory)[i] = -1;
  return memory;
}

/* Each puts, gets and adds at its right neighbour, in epochs of each kind. `memory` is this rank's part, of `ints` at the neighbour, at least 3. */
static void Use(MPI_Win win, MPI_Comm comm, int* memory, int ints, int right_ints) {
  int rank, size, got = 0, one = 1, before = 0, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size, mine = 100 + rank;
  MPI_Win_fence(0, win);
  if (right_ints > 0) MPI_Put(&mine, 1, MPI_INT, right, right_ints - 1, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  if (ints > 0) {
    CHECK_EQ(memory[ints - 1], 100 + left);
    memory[0] = 10 * rank;
    memory[1] = 0;
  }
  MPI_Win_fence(0, win);
  if (right_ints > 0) MPI_Get(&got, 1, MPI_INT, right, 0, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  if (right_ints > 0) CHECK_EQ(got, 10 * right);
  for (int target = 0; target < size; target++) {
    int has = 0;
    if (target == right) has = right_ints > 0;
    if (!has) continue;
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    MPI_Accumulate(&one, 1, MPI_INT, target, 1, 1, MPI_INT, MPI_SUM, win);
    MPI_Fetch_and_op(&one, &before, MPI_INT, target, 1, MPI_SUM, win);
    MPI_Win_flush(target, win);
    CHECK(before >= 1);
    MPI_Compare_and_swap(&mine, &mine, &before, MPI_INT, target, 1, win);
    MPI_Win_unlock(target, win);
  }
  MPI_Barrier(comm);
  if (ints > 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    MPI_Get_accumulate(NULL, 0, MPI_INT, &sum, 1, MPI_INT, rank, 1, 1, MPI_INT, MPI_NO_OP, win);
    MPI_Win_unlock(rank, win);
    if (!MpichDeviates("accumulates of a window whose base is not a multiple of 64 can go elsewhere")) CHECK_EQ(sum, 2);
  }
  MPI_Barrier(comm);
}

/* A part of another length at another place of each rank's memory; rank 2 gives none. MPICH 4.0.2 takes the 16 bytes that the base is in for its begin. */
static int BeginOf(int rank) { return 16 * (1 + rank); }
static int PartOf(int rank) { return rank == 2 ? 0 : kInts / 2 - 100 * (rank % 8); }

static void Parts(MPI_Comm comm) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int* const memory = Allocate(kInts);
  int *const part = memory + BeginOf(rank), ints = PartOf(rank);
  MPI_Win win;
  CHECK_OK(MPI_Win_create(ints > 0 ? part : NULL, (MPI_Aint)sizeof(int) * ints, sizeof(int), MPI_INFO_NULL, comm, &win));
  void* base;
  MPI_Aint* bytes;
  int found;
  MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &found);
  if (ints > 0) CHECK(found && base == part);
  MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &found);
  CHECK(found && *bytes == (MPI_Aint)sizeof(int) * ints);
  Use(win, comm, part, ints, PartOf((rank + 1) % size));
  for (int i = 0; i < BeginOf(rank); i++) CHECK_EQ(memory[i], -1);
  for (int i = BeginOf(rank) + ints; i < kInts; i++) CHECK_EQ(memory[i], -1);
  MPI_Win_free(&win);
  MPI_Free_mem(memory);
}

/* Some ranks have memory of MPI_Alloc_mem, some of malloc, some a part of what MPI_Alloc_mem returned. */
static void Mixed(void) {
  int* const memory = world_rank % 2 == 0 ? Allocate(kInts) : malloc(kInts * sizeof(int));
  MPI_Win win;
  for (int i = 0; i < kInts; i++) memory[i] = -1;
  CHECK_OK(MPI_Win_create(memory, kInts * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  Use(win, MPI_COMM_WORLD, memory, kInts, kInts);
  MPI_Win_free(&win);
  if (world_rank % 2 == 0) {
    MPI_Free_mem(memory);
  } else {
    free(memory);
  }
}

/* Windows of different communicators over the same memory and over neighbouring parts of it. */
static void Several(void) {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half);
  int* const memory = Allocate(2 * kInts);
  MPI_Win all, first, second;
  CHECK_OK(MPI_Win_create(memory, 2 * kInts * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &all));
  CHECK_OK(MPI_Win_create(memory, kInts * sizeof(int), sizeof(int), MPI_INFO_NULL, half, &first));
  CHECK_OK(MPI_Win_create(memory + kInts, kInts * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &second));
  Use(first, half, memory, kInts, kInts);
  MPI_Barrier(MPI_COMM_WORLD);
  Use(all, MPI_COMM_WORLD, memory, 2 * kInts, 2 * kInts);
  MPI_Win_free(&first);
  Use(second, MPI_COMM_WORLD, memory + kInts, kInts, kInts);
  MPI_Win_free(&all);
  Use(second, MPI_COMM_WORLD, memory + kInts, kInts, kInts);
  MPI_Win_free(&second);
  MPI_Free_mem(memory);
  MPI_Comm_free(&half);
}

/* Memory that others had mapped is somebody else's afterwards, small or large. */
static void Again(void) {
  for (int round = 0; round < 6; round++) {
    const int ints = round % 2 == 0 ? 300 : 400000;
    int *const memory = Allocate((size_t)ints), *const beside = Allocate((size_t)ints);
    MPI_Win win;
    CHECK_OK(MPI_Win_create(memory, (MPI_Aint)sizeof(int) * ints, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    Use(win, MPI_COMM_WORLD, memory, ints, ints);
    MPI_Win_free(&win);
    MPI_Free_mem(memory);
    for (int i = 0; i < ints; i++) CHECK_EQ(beside[i], -1);
    MPI_Free_mem(beside);
  }
}

static void ManyAllocations(void) {
  static int* all[kMany];
  for (int i = 0; i < kMany; i++) {
    all[i] = Allocate(1 + (size_t)(i % 97 == 0 ? 300000 : i % 50));
    CHECK_EQ((uintptr_t)all[i] % 16, 0);
    all[i][0] = i;
  }
  for (int i = 0; i < kMany; i += 2) {
    CHECK_EQ(all[i][0], i);
    MPI_Free_mem(all[i]);
    all[i] = Allocate(20);
    all[i][0] = i;
  }
  for (int i = 0; i < kMany; i++) {
    CHECK_EQ(all[i][0], i);
    MPI_Free_mem(all[i]);
  }
  void* nothing;
  CHECK_OK(MPI_Alloc_mem(0, MPI_INFO_NULL, &nothing));
  MPI_Free_mem(nothing);
}

static void ManyWindows(void) {
  MPI_Win windows[kWindows];
  int* memory[kWindows];
  for (int i = 0; i < kWindows; i++) {
    memory[i] = Allocate(10);
    CHECK_OK(MPI_Win_create(memory[i], 10 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &windows[i]));
  }
  for (int i = kWindows; i-- > 0;) Use(windows[i], MPI_COMM_WORLD, memory[i], 10, 10);
  for (int i = 0; i < kWindows; i++) {
    MPI_Win_free(&windows[i]);
    MPI_Free_mem(memory[i]);
  }
}

/* Not all ranks call it, and none waits for another. */
static void Alone(void) {
  if (world_rank == 0) MPI_Free_mem(Allocate(kInts));
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  Alone();
  Parts(MPI_COMM_WORLD);
  Parts(MPI_COMM_SELF);
  Mixed();
  Several();
  Again();
  ManyAllocations();
  ManyWindows();
  return End();
}
