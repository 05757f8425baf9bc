/* worlds WHAT CHILDREN: the ranks of several MPI_COMM_WORLDs in one communicator, of which one dies. No connection ends with it: a process that it has forked
 * holds them all. Each other that lives hears of the death, goes on with those that live, and says so at the end.
 *
 * "child", "parent": the last of the spawned job, or of the one that spawned it. "sibling": the last of one of two spawned jobs, which have met at a port. */
#include <signal.h>
#include <unistd.h>

#include "tests/mpi/check.h"

static const char* what;

static void Die(void) {
  if (fork() == 0) {
    for (;;) pause();
  }
  kill(getpid(), SIGKILL);
}

static int CountAcknowledged(MPI_Comm comm) {
  int size;
  MPI_Group failed;
  CHECK_OK(MPIX_Comm_failure_ack(comm));
  CHECK_OK(MPIX_Comm_failure_get_acked(comm, &failed));
  MPI_Group_size(failed, &size);
  if (failed != MPI_GROUP_EMPTY) MPI_Group_free(&failed);
  return size;
}

/* Of `comm`, in which each has a connection with each, the rank `victim` dies. */
static void Outlive(MPI_Comm comm, int victim) {
  int rank, size, value = 0, flag = 1, one = 1, sum = 0;
  const int first = victim == 0;
  MPI_Comm living;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    CHECK_OK(MPI_Sendrecv(&rank, 1, MPI_INT, other, 1, &value, 1, MPI_INT, other, 1, comm, MPI_STATUS_IGNORE));
    CHECK_EQ(value, other);
  }
  CHECK_OK(MPI_Barrier(comm));
  if (rank == victim) Die();
  if (rank == first) CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, victim, 2, comm, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  while (CountAcknowledged(comm) == 0) usleep(1000);
  CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, victim, 2, comm), MPIX_ERR_PROC_FAILED);
  CHECK_OK(MPIX_Comm_agree(comm, &flag));
  CHECK_OK(MPIX_Comm_shrink(comm, &living));
  CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, living));
  CHECK_EQ(sum, size - 1);
  CHECK_OK(MPI_Comm_free(&living));
}

static MPI_Comm Merged(MPI_Comm inter, int high) {
  MPI_Comm merged;
  CHECK_OK(MPI_Intercomm_merge(inter, high, &merged));
  return merged;
}

static int SizeOf(MPI_Comm comm) {
  int size;
  MPI_Comm_size(comm, &size);
  return size;
}

static MPI_Comm Spawn(char* program, int number, const char* as) {
  char* words[] = {(char*)as, NULL};
  MPI_Comm children;
  CHECK_OK(MPI_Comm_spawn(program, words, number, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
  return children;
}

/* The ranks of the parents' world come first. */
static void WithChildren(char* program, int number) {
  MPI_Comm children = Spawn(program, number, what), merged = Merged(children, 0);
  Outlive(merged, strcmp(what, "parent") == 0 ? world_size - 1 : world_size + number - 1);
  CHECK_OK(MPI_Comm_free(&merged));
  CHECK_OK(MPI_Comm_free(&children));
}

/* Tells one job of children where the other waits, and has no part in what they do. */
static void BesideSiblings(char* program, int number) {
  MPI_Comm first = Spawn(program, number, "first"), second = Spawn(program, number, "second");
  char port[MPI_MAX_PORT_NAME];
  if (world_rank == 0) {
    CHECK_OK(MPI_Recv(port, sizeof port, MPI_CHAR, 0, 0, first, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Send(port, sizeof port, MPI_CHAR, 0, 0, second));
  }
  CHECK_OK(MPI_Comm_disconnect(&first));
  CHECK_OK(MPI_Comm_disconnect(&second));
}

static void MeetSibling(MPI_Comm parents, int is_first) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm inter, merged;
  if (is_first && world_rank == 0) {
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    CHECK_OK(MPI_Send(port, sizeof port, MPI_CHAR, 0, 0, parents));
  } else if (world_rank == 0) {
    CHECK_OK(MPI_Recv(port, sizeof port, MPI_CHAR, 0, 0, parents, MPI_STATUS_IGNORE));
  }
  CHECK_OK(MPI_Comm_disconnect(&parents));
  if (is_first) CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
  if (!is_first) CHECK_OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
  merged = Merged(inter, !is_first);
  Outlive(merged, SizeOf(merged) - 1);
  CHECK_OK(MPI_Comm_free(&merged));
  CHECK_OK(MPI_Comm_free(&inter));
}

int main(int argc, char** argv) {
  MPI_Comm parents;
  const char* role = "parent";
  Begin(&argc, &argv);
  if (argc < 2) return 2;
  what = argv[1];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_OK(MPI_Comm_get_parent(&parents));
  if (parents == MPI_COMM_NULL) {
    const int number = argc > 2 ? atoi(argv[2]) : 1;
    (strcmp(what, "sibling") == 0 ? BesideSiblings : WithChildren)(argv[0], number);
  } else if (strcmp(what, "first") == 0 || strcmp(what, "second") == 0) {
    role = what;
    MeetSibling(parents, strcmp(what, "first") == 0);
  } else {
    role = "child";
    MPI_Comm merged = Merged(parents, 1);
    Outlive(merged, strcmp(what, "parent") == 0 ? SizeOf(merged) - world_size - 1 : SizeOf(merged) - 1);
    CHECK_OK(MPI_Comm_free(&merged));
    CHECK_OK(MPI_Comm_free(&parents));
  }
  const int status = End();
  if (status == 0) printf("%s %d lived\n", role, world_rank);
  return status;
}
