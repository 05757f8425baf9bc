/* Calls that do not match: where the lengths of messages show it, the ranks that see it get an error, and nobody hangs. One line of output per
 * collective at rank 0: its name and whether ranks had an error; of broadcasts, whether all but the root had, those too that get
 * the data from a rank that made the same mistake. */
#include <mpi.h>
#include <stdio.h>

static int rank, size;

static void report_by(const char *what, int code, int least) {
  int class = MPI_SUCCESS, had_error, all;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  had_error = class == MPI_ERR_TRUNCATE;
  MPI_Allreduce(&had_error, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%s at %d: %s\n", what, all, all >= least ? "seen" : "not seen");
}
static void report(const char *what, int code) { report_by(what, code, 1); }

int main(int argc, char **argv) {
  int a[64] = {0}, b[64];
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  report_by("bcast-short", MPI_Bcast(a, rank == 0 ? 3 : 4, MPI_INT, 0, MPI_COMM_WORLD), size - 1);
  report_by("bcast-long", MPI_Bcast(a, rank == 0 ? 5 : 4, MPI_INT, 0, MPI_COMM_WORLD), size - 1);
  report("allreduce", MPI_Allreduce(a, b, rank == 0 ? 2 : 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  report("gather", MPI_Gather(a, rank == 1 ? 2 : 1, MPI_INT, b, 1, MPI_INT, 0, MPI_COMM_WORLD));
  report("allgather", MPI_Allgather(a, rank == 1 ? 2 : 1, MPI_INT, b, rank == 1 ? 2 : 1, MPI_INT, MPI_COMM_WORLD));
  report("alltoall", MPI_Alltoall(a, rank == 1 ? 2 : 1, MPI_INT, b, rank == 1 ? 2 : 1, MPI_INT, MPI_COMM_WORLD));
  MPI_Ibcast(a, rank == 0 ? 3 : 4, MPI_INT, 0, MPI_COMM_WORLD, &request);
  report_by("ibcast", MPI_Wait(&request, MPI_STATUS_IGNORE), size - 1);
  if (size == 2) {
    report("barrier-and-allreduce",
           rank == 0 ? MPI_Barrier(MPI_COMM_WORLD) : MPI_Allreduce(a, b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  }
  MPI_Finalize();
  return 0;
}
