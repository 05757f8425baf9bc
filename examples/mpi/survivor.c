/* A job that replaces what it lost. Ranks work in steps, of which each adds up what all have done; one rank dies on the way. The others revoke the communicator,
 * so that nobody waits for it, shrink it to those that live, spawn as many as died, and tell them how far the work is.
 *
 *   mpiexec -disable-auto-cleanup -n 4 ./survivor [STEPS]
 *
 * mpiexec's exit status is that of the rank that died: 137. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  int steps, step, wanted; /* ranks */
  long sum;
} Progress;

static int Fails(int code) { return code != MPI_SUCCESS; }

/* The same at all of `team`: whether all went well. */
static int WentWell(MPI_Comm team, int good) {
  int all = good;
  return !Fails(MPIX_Comm_agree(team, &all)) && all;
}

static void GetReady(MPI_Comm team) { MPI_Comm_set_errhandler(team, MPI_ERRORS_RETURN); }

/* Those that live, and new ones in the place of those that do not. 0: somebody else died meanwhile. */
static int Replace(MPI_Comm* team, const char* program, int wanted) {
  MPI_Comm living, children = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  int size, good = 1;
  MPIX_Comm_failure_ack(*team);
  MPIX_Comm_shrink(*team, &living);
  GetReady(living);
  MPI_Comm_size(living, &size);
  char* arguments[] = {"replacement", NULL};
  if (size < wanted) {
    good = !Fails(MPI_Comm_spawn(program, arguments, wanted - size, MPI_INFO_NULL, 0, living, &children, MPI_ERRCODES_IGNORE));
    if (good) good = !Fails(MPI_Intercomm_merge(children, 0, &merged));
  } else {
    MPI_Comm_dup(living, &merged);
  }
  good = WentWell(living, good);
  MPI_Comm_free(team);
  if (children != MPI_COMM_NULL) MPI_Comm_free(&children);
  *team = good ? merged : living;
  if (good) MPI_Comm_free(&living);
  GetReady(*team);
  return good;
}

/* What all have to know; the first rank does. */
static int Tell(MPI_Comm team, Progress* progress) { return !Fails(MPI_Bcast(progress, sizeof *progress, MPI_BYTE, 0, team)); }

int main(int argc, char** argv) {
  MPI_Comm team, parents;
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parents);
  const int is_new = parents != MPI_COMM_NULL;
  Progress progress = {.steps = argc > 1 && !is_new ? atoi(argv[1]) : 10};
  if (is_new) {
    MPI_Intercomm_merge(parents, 1, &team);
    MPI_Comm_free(&parents);
  } else {
    MPI_Comm_dup(MPI_COMM_WORLD, &team);
  }
  GetReady(team);
  MPI_Comm_size(team, &progress.wanted);
  MPI_Comm_rank(team, &rank);
  const int dies = !is_new && rank == progress.wanted - 1 && rank != 0;
  int knows = !is_new || Tell(team, &progress);
  while (progress.step < progress.steps) {
    if (dies && progress.step == progress.steps / 2) raise(SIGKILL);
    MPI_Comm_rank(team, &rank);
    long mine = rank + 1, sum = 0;
    int good = knows && !Fails(MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, team));
    if (!good) MPIX_Comm_revoke(team);
    if (WentWell(team, good)) {
      progress.sum += sum;
      ++progress.step;
      continue;
    }
    while (!Replace(&team, argv[0], progress.wanted)) {
    }
    knows = Tell(team, &progress);
  }
  MPI_Comm_rank(team, &rank);
  MPI_Comm_size(team, &size);
  const long right = (long)progress.steps * size * (size + 1) / 2;
  if (rank == 0) printf("survivor: %d steps of %d ranks, the sum is %s\n", progress.steps, size, progress.sum == right && size == progress.wanted ? "right" : "wrong");
  MPI_Comm_free(&team);
  MPI_Finalize();
  return progress.sum != right;
}
