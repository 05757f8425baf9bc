/* windows_again: makes, uses and frees windows of allocated memory one after the other, of all ranks and of all but the last, in two orders of the ranks. Each
 * window begins with zeros and free of all that the ones before had (locks, counters, accumulates), whatever they had in it. Each rank prints "rank R: places=P":
 * in how many different places of the host's memory those windows of all ranks in their order were that have the same length. */
#define _GNU_SOURCE
#include "tests/mpi/check.h"

enum { kRounds = 20, kWords = 1000 };

/* Offset in its file of what is mapped at `memory`. */
static long PlaceOf(const void* memory) {
  char line[512];
  long place = -1;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long first, end, offset;
    if (sscanf(line, "%lx-%lx %*s %lx", &first, &end, &offset) != 3) continue;
    if ((unsigned long)memory >= first && (unsigned long)memory < end) place = (long)(offset + (unsigned long)memory - first);
  }
  fclose(maps);
  CHECK(place >= 0);
  return place;
}

static long One(MPI_Comm comm, int words) {
  int rank, size, *memory, one = 1, value;
  MPI_Win window;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int right = (rank + 1) % size;
  CHECK_EQ(MPI_Win_allocate(words * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &memory, &window), MPI_SUCCESS);
  for (int i = 0; i < words; i++) CHECK_EQ(memory[i], 0);
  const long place = PlaceOf(memory);
  MPI_Win_fence(0, window);
  value = 100 + rank;
  MPI_Put(&value, 1, MPI_INT, right, kWords - 1, 1, MPI_INT, window);
  MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
  MPI_Win_fence(0, window);
  CHECK_EQ(memory[kWords - 1], 100 + (rank + size - 1) % size);
  if (rank == 0) CHECK_EQ(memory[0], size);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, window);
  MPI_Put(&value, 1, MPI_INT, right, 1, 1, MPI_INT, window);
  MPI_Win_unlock(right, window);
  MPI_Barrier(comm);
  memset(memory, 0xff, (size_t)words * sizeof(int));
  MPI_Win_free(&window);
  return place;
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm backwards, some;
  MPI_Comm_split(MPI_COMM_WORLD, 0, world_size - world_rank, &backwards);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank == world_size - 1 ? MPI_UNDEFINED : 0, world_rank, &some);
  long places[kRounds];
  int different = 0;
  for (int i = 0; i < kRounds; i++) {
    places[i] = One(MPI_COMM_WORLD, kWords);
    One(backwards, kWords);
    if (some != MPI_COMM_NULL) One(some, kWords + i);
    One(MPI_COMM_WORLD, kWords * (2 + i % 3 + world_rank % 2));
    int known = 0;
    for (int j = 0; j < i; j++) known |= places[j] == places[i];
    different += !known;
  }
  printf("rank %d: places=%d\n", world_rank, different);
  fflush(stdout);
  if (some != MPI_COMM_NULL) MPI_Comm_free(&some);
  MPI_Comm_free(&backwards);
  return End();
}
