/* apart VICTIM [still] [self]: a job spawns another, and they part by MPI_Comm_disconnect; then the last rank of the one that VICTIM names, "parent" or
 * "child", kills itself as soon as the file DIE is there, and the other job goes on: it waits until the file GO_ON is there, and says that it does.
 * "still": not all that they have in common is disconnected. "self": rank 0 spawns alone. */
#include <signal.h>
#include <unistd.h>

#include "tests/mpi/check.h"

static int Has(int argc, char** argv, const char* word) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], word) == 0) return 1;
  }
  return 0;
}

/* Everybody of both jobs talks to everybody, on what is made of the intercommunicator. */
static void TalkAndPart(MPI_Comm inter, int high, int still) {
  MPI_Comm merged, more = MPI_COMM_NULL;
  int sum = 0, one = 1, size;
  CHECK_OK(MPI_Intercomm_merge(inter, high, &merged));
  CHECK_OK(MPI_Comm_size(merged, &size));
  CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged));
  CHECK_EQ(sum, size);
  if (still) CHECK_OK(MPI_Comm_dup(merged, &more)); /* and is left as it is */
  CHECK_OK(MPI_Comm_disconnect(&inter));
  CHECK_OK(MPI_Comm_disconnect(&merged));
}

static void AwaitFile(const char* variable) {
  while (access(getenv(variable), F_OK) != 0) usleep(10000);
}

static void GoOn(const char* role, int dies) {
  printf("%s %d has parted\n", role, world_rank);
  fflush(stdout);
  if (dies && world_rank == world_size - 1) {
    AwaitFile("DIE");
    raise(SIGKILL);
  }
  if (dies) pause();
  AwaitFile("GO_ON");
  int sum = 0, one = 1;
  CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQ(sum, world_size);
  printf("%s %d goes on\n", role, world_rank);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm parent, children = MPI_COMM_NULL;
  CHECK_OK(MPI_Comm_get_parent(&parent));
  const int still = Has(argc, argv, "still"), self = Has(argc, argv, "self");
  if (parent != MPI_COMM_NULL) {
    TalkAndPart(parent, 1, still);
    GoOn("child", Has(argc, argv, "child"));
    return End();
  }
  if (!self || world_rank == 0) {
    CHECK_OK(MPI_Comm_spawn(argv[0], argv + 1, 3, MPI_INFO_NULL, 0, self ? MPI_COMM_SELF : MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    TalkAndPart(children, 0, still);
  }
  CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
  GoOn("parent", Has(argc, argv, "parent"));
  return End();
}
