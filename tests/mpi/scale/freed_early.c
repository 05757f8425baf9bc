/* Each rank gives memory of MPI_Alloc_mem back while windows over it exist, which is wrong, and allocates other memory; then all put into the windows. Nobody
 * ends, the other memory stays as it was, and each says which pages of such memory it had, and has at the end. With WEFT_SAME_HOST=off it is the program's own
 * memory, into which nobody may put any more: then nobody does. */
#define _GNU_SOURCE
#include "tests/mpi/check.h"
#include "tests/mpi/host_memory.h"

enum { kInts = 1 << 20, kFew = 100 };

static int* Allocate(int ints, int value) {
  int* memory;
  CHECK_OK(MPI_Alloc_mem((MPI_Aint)sizeof(int) * ints, MPI_INFO_NULL, &memory));
  for (int i = 0; i < ints; i++) memory[i] = value;
  return memory;
}

static void PutAtRight(MPI_Win window, int ints) {
  const int value = 100 + world_rank;
  int got = 0;
  MPI_Win_fence(0, window);
  MPI_Put(&value, 1, MPI_INT, Right(), ints - 1, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  MPI_Get(&got, 1, MPI_INT, Right(), ints - 1, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  CHECK_EQ(got, value);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Win large, small, late;
  int *const memory = Allocate(kInts, 1), *const few = Allocate(kFew, 2);
  CHECK_OK(MPI_Win_create(memory, kInts * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &large));
  CHECK_OK(MPI_Win_create(few, kFew * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &small));
  CHECK_OK(MPI_Win_create(memory, kInts * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &late));
  const long pages = AllocMemPages();
  PutAtRight(large, kInts);
  PutAtRight(small, kFew);
  MPI_Free_mem(memory);
  MPI_Free_mem(few);
  int *const other = Allocate(kInts, 3), *const other_few = Allocate(kFew, 4);
  MPI_Barrier(MPI_COMM_WORLD);
  if (pages > 0) {
    PutAtRight(large, kInts);
    PutAtRight(small, kFew);
    PutAtRight(late, kInts);
  }
  for (int i = 0; i < kInts; i++) CHECK_EQ(other[i], 3);
  for (int i = 0; i < kFew; i++) CHECK_EQ(other_few[i], 4);
  MPI_Win_free(&late);
  MPI_Win_free(&large);
  MPI_Win_free(&small);
  MPI_Free_mem(other);
  MPI_Free_mem(other_few);
  printf("rank %d: pages=%ld, at the end %ld\n", world_rank, pages, AllocMemPages());
  fflush(stdout);
  return End();
}
