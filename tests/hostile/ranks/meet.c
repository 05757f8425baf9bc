// meet DIRECTORY: each rank leaves the file ready.RANK there and looks for messages until there is a file go; then all exchange a word with each.
#define _DEFAULT_SOURCE  // usleep()

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1) {
    char path[4096];
    snprintf(path, sizeof path, "%s/ready.%d", argv[1], rank);
    fclose(fopen(path, "w"));
    snprintf(path, sizeof path, "%s/go", argv[1]);
    for (int flag; access(path, F_OK) != 0; usleep(1000)) {
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
  }
  int* given = malloc(sizeof(int) * size);
  int* got = malloc(sizeof(int) * size);
  for (int i = 0; i < size; ++i) given[i] = rank * 1000 + i;
  MPI_Alltoall(given, 1, MPI_INT, got, 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Request* requests = malloc(sizeof(MPI_Request) * 2 * size);
  for (int i = 0; i < size; ++i) MPI_Irecv(&got[i], 1, MPI_INT, i, 5, MPI_COMM_WORLD, &requests[i]);
  for (int i = 0; i < size; ++i) MPI_Isend(&given[i], 1, MPI_INT, i, 5, MPI_COMM_WORLD, &requests[size + i]);
  MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < size; ++i) {
    if (got[i] != i * 1000 + rank) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank == 0) puts("all have met");
  MPI_Finalize();
  return 0;
}
