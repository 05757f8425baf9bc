// away DIRECTORY: each rank starts a message to each other and leaves the file ready.RANK there. Those with an even number then compute, outside of MPI,
// until there is a file go; the others wait for their messages at once. All arrive.
#define _DEFAULT_SOURCE  // usleep()

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int* given = malloc(sizeof(int) * size);
  int* got = malloc(sizeof(int) * size);
  MPI_Request* requests = malloc(sizeof(MPI_Request) * 2 * size);
  for (int i = 0; i < size; ++i) given[i] = rank * 1000 + i;
  for (int i = 0; i < size; ++i) MPI_Isend(&given[i], 1, MPI_INT, i, 5, MPI_COMM_WORLD, &requests[i]);
  char path[4096];
  snprintf(path, sizeof path, "%s/ready.%d", argv[1], rank);
  fclose(fopen(path, "w"));
  snprintf(path, sizeof path, "%s/go", argv[1]);
  while (rank % 2 == 0 && access(path, F_OK) != 0) usleep(1000);
  for (int i = 0; i < size; ++i) MPI_Irecv(&got[i], 1, MPI_INT, i, 5, MPI_COMM_WORLD, &requests[size + i]);
  MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < size; ++i) {
    if (got[i] != i * 1000 + rank) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) puts("all have met");
  MPI_Finalize();
  return 0;
}
