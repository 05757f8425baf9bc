// What other MPI libraries do over Weft: messages of several sizes, and one-sided operations between two ranks, all checked.
// "mpi_program two-sided|one-sided"; prints "right" on rank 0.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank;

static void must(int holds, const char* what, int size) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s, %d\n", rank, what, size);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char byte_of(int from, int round, int at) { return (unsigned char)(from * 97 + round * 31 + at * 7 + (at >> 8)); }

static void ping_pong(int size) {
  unsigned char* out = malloc(size);
  unsigned char* in = malloc(size);
  const int peer = 1 - rank;
  for (int round = 0; round < 10; ++round) {
    for (int at = 0; at < size; ++at) out[at] = byte_of(rank, round, at);
    memset(in, 0, size);
    if (rank == 0) {
      MPI_Send(out, size, MPI_BYTE, peer, round, MPI_COMM_WORLD);
      MPI_Recv(in, size, MPI_BYTE, peer, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(in, size, MPI_BYTE, peer, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(out, size, MPI_BYTE, peer, round, MPI_COMM_WORLD);
    }
    for (int at = 0; at < size; ++at) must(in[at] == byte_of(peer, round, at), "a wrong byte came, of a message of", size);
  }
  free(out);
  free(in);
}

static void two_sided(void) {
  const int sizes[] = {0, 1, 8, 1000, 8192, 65536, 1 << 20};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i) ping_pong(sizes[i]);
  long sum = 0, mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  must(sum == 3, "MPI_Allreduce is wrong", (int)sum);
}

static void put_and_get(int count) {
  const int peer = 1 - rank;
  int *window_memory, *local = malloc(count * sizeof(int));
  MPI_Win window;
  MPI_Win_allocate(count * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window_memory, &window);
  for (int i = 0; i < count; ++i) local[i] = (rank + 1) * 1000000 + i;
  MPI_Win_fence(0, window);
  MPI_Put(local, count, MPI_INT, peer, 0, count, MPI_INT, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < count; ++i) must(window_memory[i] == (peer + 1) * 1000000 + i, "MPI_Put left something else", count);
  memset(local, 0, count * sizeof(int));
  MPI_Win_fence(0, window);
  MPI_Get(local, count, MPI_INT, peer, 0, count, MPI_INT, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < count; ++i) must(local[i] == (rank + 1) * 1000000 + i, "MPI_Get brought something else", count);
  MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, window);
  MPI_Put(&rank, 1, MPI_INT, peer, 0, 1, MPI_INT, window);
  MPI_Win_flush(peer, window);
  MPI_Win_unlock(peer, window);
  MPI_Barrier(MPI_COMM_WORLD);
  must(window_memory[0] == peer, "MPI_Put under a lock left something else", count);
  MPI_Win_free(&window);
  free(local);
}

static void accumulate(void) {
  const int rounds = 100, size = 64;
  long* counters;
  MPI_Win window;
  MPI_Win_allocate(size * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &counters, &window);
  memset(counters, 0, size * sizeof(long));
  MPI_Barrier(MPI_COMM_WORLD);
  long ones[64];
  for (int i = 0; i < size; ++i) ones[i] = i;
  MPI_Win_fence(0, window);
  for (int i = 0; i < rounds; ++i) MPI_Accumulate(ones, size, MPI_LONG, 0, 0, size, MPI_LONG, MPI_SUM, window);
  MPI_Win_fence(0, window);
  for (int i = 0; rank == 0 && i < size; ++i) must(counters[i] == 2l * rounds * i, "MPI_Accumulate is wrong at", i);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  long one = 1, before = 0;
  for (int i = 0; i < rounds; ++i) {
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  must(rank != 0 || counters[0] == 2 * rounds, "MPI_Fetch_and_op is wrong", rank == 0 ? (int)counters[0] : 0);
  MPI_Win_free(&window);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  must(ranks == 2 && argc == 2, "wants two ranks and one argument, not", ranks);
  if (strcmp(argv[1], "two-sided") == 0) {
    two_sided();
  } else {
    put_and_get(1);
    put_and_get(2000);
    put_and_get(300000);
    accumulate();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("right\n");
  MPI_Finalize();
  return 0;
}
