// Programs that meet others of their kind, for mixed_versions_test.py:
//   job             all ranks of MPI_COMM_WORLD add their ranks up
//   accept          opens a port, prints its name, and accepts
//   connect PORT    connects
//   spawn COMMAND ARGUMENTS...  spawns one process, which runs `child`
//   child           is spawned
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* what = argc > 1 ? argv[1] : "";
  MPI_Comm other = MPI_COMM_NULL;
  if (strcmp(what, "accept") == 0) {
    char port[MPI_MAX_PORT_NAME];
    MPI_Open_port(MPI_INFO_NULL, port);
    printf("port %s\n", port);
    fflush(stdout);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
  } else if (strcmp(what, "connect") == 0 && argc > 2) {
    MPI_Comm_connect(argv[2], MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
  } else if (strcmp(what, "spawn") == 0 && argc > 2) {
    MPI_Comm_spawn(argv[2], &argv[3], 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other, MPI_ERRCODES_IGNORE);
  } else if (strcmp(what, "child") == 0) {
    MPI_Comm_get_parent(&other);
  }
  int mine = 1, sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, other == MPI_COMM_NULL ? MPI_COMM_WORLD : other);
  if (other != MPI_COMM_NULL) sum += mine;  // the other group's sum
  printf("%s: %d processes met\n", what, sum);
  if (other != MPI_COMM_NULL) MPI_Comm_disconnect(&other);
  MPI_Finalize();
  return 0;
}
