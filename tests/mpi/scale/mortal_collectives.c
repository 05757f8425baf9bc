/* mortal_collectives SEED: collectives drawn from the seed, the same at all ranks, in one of which rank 1 kills itself; some are long, so that it
 * dies in the middle of one. Every other rank says how its collectives ended: "an error" of a dead rank, of which each later one tells too. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 800000 };
static double in[MOST], out[MOST];

static unsigned state;
static unsigned draw(unsigned below) {
  state = state * 1103515245u + 12345u;
  return state / 65536u % below;
}

/* In the middle of whatever rank 1 does. */
static void die_after(unsigned microseconds) {
  if (fork() == 0) {
    pid_t parent = getppid();
    usleep(microseconds);
    kill(parent, SIGKILL);
    _exit(0);
  }
}

static int collective(int size) {
  int count = draw(2) ? (int)draw(4) : (int)draw(MOST / 8), root = (int)draw((unsigned)size);
  switch (draw(8)) {
    case 0: return MPI_Barrier(MPI_COMM_WORLD);
    case 1: return MPI_Bcast(in, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
    case 2: return MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    case 3: return MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
    case 4: return MPI_Allgather(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, MPI_COMM_WORLD);
    case 5: return MPI_Gather(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
    case 6: return MPI_Scatter(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
    default: return MPI_Alltoall(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, MPI_COMM_WORLD);
  }
}

int main(int argc, char **argv) {
  int rank, size, code, class;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  state = (unsigned)atoi(argv[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) die_after(draw(30000));
  else draw(30000);
  do {
    code = collective(size);
  } while (code == MPI_SUCCESS);
  MPI_Error_class(code, &class);
  code = MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d: %s%s\n", rank, class == MPIX_ERR_PROC_FAILED || class == MPI_ERR_PROC_ABORTED ? "an error" : "another error",
         code == MPI_SUCCESS ? ", and then none" : "");
  fflush(stdout);
  _exit(0);
}
