/* many_windows COUNT: makes COUNT windows of allocated memory and COUNT over memory of the ranks' own, puts into each, and frees them. Each rank prints
 * "rank R: mappings=M,pages=P,again=A": what it has mapped more with all of them than before, pages that the host's memory has more after them, and pages
 * more after the same again, twice. */
#define _GNU_SOURCE
#include "tests/mpi/check.h"
#include "tests/mpi/host_memory.h"

enum { kWords = 4096, kMost = 1000 };

static int Mappings(void) {
  FILE* maps = fopen("/proc/self/maps", "r");
  int lines = 0;
  for (int c; (c = fgetc(maps)) != EOF;) lines += c == '\n';
  fclose(maps);
  return lines;
}

static void Make(MPI_Win* window, int** memory, int allocated) {
  if (allocated) {
    CHECK_EQ(MPI_Win_allocate(kWords * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, memory, window), MPI_SUCCESS);
  } else {
    *memory = malloc(kWords * sizeof(int));
    CHECK_EQ(MPI_Win_create(*memory, kWords * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, window), MPI_SUCCESS);
  }
  memset(*memory, 0, kWords * sizeof(int));
}

static void Use(MPI_Win window, const int* memory, int value) {
  const int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size, word = value + world_rank;
  MPI_Win_fence(0, window);
  MPI_Put(&word, 1, MPI_INT, right, kWords - 1, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  CHECK_EQ(memory[kWords - 1], value + left);
}

static void MakeUseAndFree(int count, int* mappings) {
  static MPI_Win windows[2 * kMost];
  static int* memory[2 * kMost];
  const int before = Mappings();
  for (int i = 0; i < 2 * count; i++) Make(&windows[i], &memory[i], i % 2);
  *mappings = Mappings() - before;
  for (int i = 0; i < 2 * count; i++) Use(windows[i], memory[i], i);
  for (int i = 0; i < 2 * count; i++) {
    MPI_Win_free(&windows[i]);
    if (i % 2 == 0) free(memory[i]);
  }
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  const int count = argc > 1 ? atoi(argv[1]) : 20;
  int mappings;
  CHECK(count <= kMost);
  MakeUseAndFree(1, &mappings);
  MPI_Barrier(MPI_COMM_WORLD);
  const long before = HostPages();
  MakeUseAndFree(count, &mappings);
  MPI_Barrier(MPI_COMM_WORLD);
  const long after = HostPages();
  MPI_Barrier(MPI_COMM_WORLD);
  int again;
  for (int i = 0; i < 2; i++) MakeUseAndFree(count, &again);
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d: mappings=%d,pages=%ld,again=%ld\n", world_rank, mappings, after - before, HostPages() - after);
  fflush(stdout);
  return End();
}
