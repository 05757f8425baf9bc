// meet [DIRECTORY [windows]]: each rank leaves the file ready.RANK there and looks for messages until there is a file go; then all exchange a word with each,
// and, if asked to, put one into each other's window. MEET_DESCRIPTORS: how many each may have.
#define _DEFAULT_SOURCE  // usleep()

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/hostile/no_descriptors/limit.h"

int main(int argc, char** argv) {
  const char* descriptors = getenv("MEET_DESCRIPTORS");
  if (descriptors != NULL) LowerDescriptorLimit(strtoul(descriptors, NULL, 10));
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int* memory;
  MPI_Win window = MPI_WIN_NULL;
  if (argc > 2) MPI_Win_allocate(sizeof(int) * size, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
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
  if (window != MPI_WIN_NULL) {
    MPI_Win_fence(0, window);
    for (int i = 0; i < size; ++i) MPI_Put(&given[i], 1, MPI_INT, i, rank, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < size; ++i) {
      if (memory[i] != i * 1000 + rank) MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Win_free(&window);
  }
  if (rank == 0) puts("all have met");
  MPI_Finalize();
  return 0;
}
