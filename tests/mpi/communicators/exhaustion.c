/* Duplicates until there is no context id left: an error, after which everything goes on; and the ids come back. */
#include "tests/mpi/check.h"

enum { kMost = 200000 };

static int UntilNoneIsLeft(MPI_Comm comms[]) {
  int count = 0, code = MPI_SUCCESS;
  while (count < kMost && (code = MPI_Comm_dup(MPI_COMM_SELF, &comms[count])) == MPI_SUCCESS) count++;
  CHECK_CLASS(code, MPI_ERR_OTHER);
  return count;
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm* comms = malloc(sizeof(MPI_Comm) * kMost);
  const int count = UntilNoneIsLeft(comms);
  CHECK(count >= 1000);
  /* Ranks are alike, so that MPI_COMM_WORLD has no more to give either. */
  MPI_Comm made;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Comm_dup(MPI_COMM_WORLD, &made), MPI_ERR_OTHER);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  int in = -1;
  MPI_Sendrecv(&count, 1, MPI_INT, 0, 5, &in, 1, MPI_INT, 0, 5, comms[count - 1], MPI_STATUS_IGNORE);
  CHECK_EQ(in, count);
  /* One that is free at all ranks is enough. */
  MPI_Comm_free(&comms[count / 2]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  MPI_Allreduce(&count, &in, 1, MPI_INT, MPI_MAX, made);
  CHECK_EQ(in, count);
  MPI_Comm_free(&made);
  for (int i = 0; i < count; i++) {
    if (i != count / 2) MPI_Comm_free(&comms[i]);
  }
  const int again = UntilNoneIsLeft(comms);
  CHECK_EQ(again, count);
  for (int i = 0; i < again; i++) MPI_Comm_free(&comms[i]);
  free(comms);
  return End();
}
