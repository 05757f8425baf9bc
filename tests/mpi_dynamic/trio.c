/* trio NUMBER FILE: one of three jobs. They stand in a ring, each accepting the one before it and connecting to the one behind; pass a
 * token around; then become one communicator, the third joining what the first two have merged, in which each talks to each. */
#include <unistd.h>

#include "tests/mpi/check.h"

static void WriteName(const char* path, int number, const char* port) {
  char draft[4096], final[4096];
  snprintf(draft, sizeof draft, "%s.draft.%d", path, number);
  snprintf(final, sizeof final, "%s.%d", path, number);
  FILE* file = fopen(draft, "w");
  fputs(port, file);
  fclose(file);
  rename(draft, final);
}

static void ReadName(const char* path, int number, char* port) {
  char name[4096];
  snprintf(name, sizeof name, "%s.%d", path, number);
  FILE* file;
  while ((file = fopen(name, "r")) == NULL) usleep(2000);
  if (fgets(port, MPI_MAX_PORT_NAME, file) == NULL) port[0] = 0;
  fclose(file);
}

static void EachToEach(MPI_Comm comm, int expected) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  CHECK_EQ(size, expected);
  int *out = malloc((size_t)size * sizeof(int)), *in = malloc((size_t)size * sizeof(int));
  for (int i = 0; i < size; ++i) out[i] = 100 * rank + i;
  CHECK_OK(MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm));
  for (int i = 0; i < size; ++i) CHECK_EQ(in[i], 100 * i + rank);
  int* memory;
  MPI_Win window;
  CHECK_OK(MPI_Win_allocate((MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &memory, &window));
  *memory = 0;
  MPI_Barrier(comm);
  CHECK_OK(MPI_Win_lock_all(0, window));
  for (int i = 0; i < size; ++i) CHECK_OK(MPI_Accumulate(&rank, 1, MPI_INT, i, 0, 1, MPI_INT, MPI_SUM, window));
  CHECK_OK(MPI_Win_unlock_all(window));
  MPI_Barrier(comm);
  CHECK_EQ(*memory, size * (size - 1) / 2);
  CHECK_OK(MPI_Win_free(&window));
  free(out);
  free(in);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  const int number = atoi(argv[1]);
  char port[MPI_MAX_PORT_NAME] = "", next_port[MPI_MAX_PORT_NAME] = "";
  if (world_rank == 0) {
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    WriteName(argv[2], number, port);
    ReadName(argv[2], (number + 1) % 3, next_port);
  }
  MPI_Comm before, behind;
  if (number == 0) CHECK_OK(MPI_Comm_connect(next_port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &behind));
  CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &before));
  if (number != 0) CHECK_OK(MPI_Comm_connect(next_port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &behind));
  int total = 0;
  if (world_rank == 0) {
    int token = 1000;
    if (number == 0) CHECK_OK(MPI_Send(&token, 1, MPI_INT, 0, 3, behind));
    CHECK_OK(MPI_Recv(&token, 1, MPI_INT, 0, 3, before, MPI_STATUS_IGNORE));
    CHECK_EQ(token, 1000 + (number == 0 ? 2 : number - 1));
    ++token;
    if (number != 0) CHECK_OK(MPI_Send(&token, 1, MPI_INT, 0, 3, behind));
  }
  /* 0 and 1 merge; their first rank opens a port for 2. */
  int sizes[3] = {0, 0, 0}, remote;
  sizes[number] = world_size;
  MPI_Comm_remote_size(before, &remote);
  sizes[(number + 2) % 3] = remote;
  MPI_Comm_remote_size(behind, &remote);
  sizes[(number + 1) % 3] = remote;
  total = sizes[0] + sizes[1] + sizes[2];
  MPI_Comm two = MPI_COMM_NULL, meeting, all;
  if (number == 0) CHECK_OK(MPI_Intercomm_merge(behind, 0, &two));
  if (number == 1) CHECK_OK(MPI_Intercomm_merge(before, 1, &two));
  if (number == 2) {
    if (world_rank == 0) ReadName(argv[2], 9, next_port);
    CHECK_OK(MPI_Comm_connect(next_port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &meeting));
  } else {
    EachToEach(two, sizes[0] + sizes[1]);
    if (number == 0 && world_rank == 0) WriteName(argv[2], 9, port);
    /* The root of the accepting side is the first job's rank 0, whose port it is. */
    CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, two, &meeting));
  }
  CHECK_OK(MPI_Intercomm_merge(meeting, number == 2, &all));
  EachToEach(all, total);
  /* Half of it goes before the whole. */
  if (number == 0) CHECK_OK(MPI_Comm_disconnect(&behind));
  CHECK_OK(MPI_Comm_disconnect(&before));
  if (number != 0) CHECK_OK(MPI_Comm_disconnect(&behind));
  if (two != MPI_COMM_NULL) CHECK_OK(MPI_Comm_disconnect(&two));
  EachToEach(all, total);
  CHECK_OK(MPI_Comm_disconnect(&meeting));
  EachToEach(all, total);
  CHECK_OK(MPI_Comm_disconnect(&all));
  if (world_rank == 0) CHECK_OK(MPI_Close_port(port));
  return End();
}
