/* What the ranks do in a cluster: ranks WHAT. Every rank ends with a line about itself, or with a complaint and status 1.
     talk           a number goes round, and grows at each rank; then each rank puts its own into the next one's memory, between fences
     abort          rank 1 calls MPI_Abort with 7
     die            rank 1 ends without MPI_Finalize, with status 5 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void expect(const char* what, int is, int wanted) {
  if (is == wanted) return;
  fprintf(stderr, "rank %d of %d: %s is %d, not %d\n", rank, size, what, is, wanted);
  exit(1);
}

static void ring(void) {
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  int sum = 0;
  if (rank == 0) {
    MPI_Send(&sum, 1, MPI_INT, next, 1, MPI_COMM_WORLD);
    MPI_Recv(&sum, 1, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect("the sum", sum, size * (size - 1) / 2);
  } else {
    MPI_Recv(&sum, 1, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sum += rank;
    MPI_Send(&sum, 1, MPI_INT, next, 1, MPI_COMM_WORLD);
  }
}

static void put(void) {
  int* memory;
  MPI_Win window;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  for (int round = 0; round < 3; ++round) {
    const int number = 100 * round + rank;
    MPI_Win_fence(0, window);
    MPI_Put(&number, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    expect("what was put", *memory, 100 * round + (rank + size - 1) % size);
  }
  MPI_Win_free(&window);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "talk";
  const char* node = getenv("SLURMD_NODENAME");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(what, "talk") == 0) ring(), put();
  if (strcmp(what, "abort") == 0 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
  if (strcmp(what, "die") == 0 && rank == 1) _exit(5);
  if (strcmp(what, "abort") == 0 || strcmp(what, "die") == 0) MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d of %d on %s: %s\n", rank, size, node != NULL ? node : "no node", what);
  MPI_Finalize();
  return 0;
}
