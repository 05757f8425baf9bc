/* A copy function that fails makes MPI_Comm_dup fail (MPI 4.0 section 7.7.2), at all ranks, and nothing is left behind.
 */
#include "tests/mpi/check.h"

static int copies, deletions, fail;

static int Copy(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)keyval, (void)extra;
  copies++;
  *flag = 1;
  *(void**)out = in;
  return fail ? MPI_ERR_OTHER : MPI_SUCCESS;
}
static int Delete(MPI_Comm comm, int keyval, void* value, void* extra) {
  (void)comm, (void)keyval, (void)value, (void)extra;
  deletions++;
  return fail ? MPI_ERR_OTHER : MPI_SUCCESS;
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  int keyval, value = 5, *found, flag;
  MPI_Comm parent, dup = MPI_COMM_WORLD;
  MPI_Comm_dup(MPI_COMM_WORLD, &parent);
  MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
  MPI_Comm_create_keyval(Copy, Delete, &keyval, NULL);
  MPI_Comm_set_attr(parent, keyval, &value);
  fail = 1;
  CHECK(MPI_Comm_dup(parent, &dup) != MPI_SUCCESS);
  CHECK_EQ(copies, 1);
  if (!MpichDeviates("leaves the argument as it was")) CHECK(dup == MPI_COMM_NULL);
  /* A delete function that fails keeps the communicator. */
  MPI_Comm kept = parent;
  if (!MpichDeviates("ends the program")) CHECK(MPI_Comm_free(&kept) != MPI_SUCCESS);
  fail = 0;
  MPI_Comm_dup(parent, &dup);
  CHECK_EQ(copies, 2);
  MPI_Comm_get_attr(dup, keyval, &found, &flag);
  CHECK(flag && found == &value);
  deletions = 0;
  MPI_Comm_free(&dup);
  CHECK_EQ(deletions, 1);
  /* At one rank only: the others learn of it instead of waiting. */
  if (!MpichDeviates("waits for ever")) {
    fail = world_rank == world_size - 1;
    CHECK(MPI_Comm_dup(parent, &dup) != MPI_SUCCESS);
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Comm_idup(parent, &dup, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(code != MPI_SUCCESS);
    fail = 0;
  }
  MPI_Barrier(parent);
  MPI_Comm_free(&parent);
  MPI_Comm_free_keyval(&keyval);
  return End();
}
