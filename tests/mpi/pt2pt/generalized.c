/* Generalized requests (MPI 4.0 section 13.2) among others, and the status functions (13.3). */
#include "tests/mpi/check.h"

static int queries, frees, cancels;

static int Query(void* state, MPI_Status* status) {
  queries++;
  MPI_Status_set_elements(status, MPI_INT, *(int*)state);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = 33;
  status->MPI_TAG = 44;
  return MPI_SUCCESS;
}
static int Free(void* state) {
  (void)state;
  frees++;
  return MPI_SUCCESS;
}
static int Cancel(void* state, int complete) {
  (void)state;
  cancels += complete ? 100 : 1;
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  int state = 5, flag = 1;
  MPI_Request request, all[3];
  MPI_Status status, statuses[3];
  MPI_Grequest_start(Query, Free, Cancel, &state, &request);
  MPI_Test(&request, &flag, &status);
  CHECK(!flag);
  MPI_Grequest_complete(request);
  MPI_Wait(&request, &status);
  CHECK_STATUS(status, 33, 44, MPI_INT, 5);
  CHECK_EQ(request, MPI_REQUEST_NULL);
  CHECK_EQ(queries, 1);
  CHECK_EQ(frees, 1);
  /* Cancelled before and after completion. */
  MPI_Grequest_start(Query, Free, Cancel, &state, &request);
  MPI_Cancel(&request);
  CHECK_EQ(cancels, 1);
  MPI_Grequest_complete(request);
  MPI_Cancel(&request);
  CHECK_EQ(cancels, 101);
  MPI_Wait(&request, &status);
  CHECK_EQ(frees, 2);
  /* Among messages. */
  int in = 0, out = 9;
  MPI_Grequest_start(Query, Free, Cancel, &state, &all[1]);
  MPI_Irecv(&in, 1, MPI_INT, Left(), 0, MPI_COMM_WORLD, &all[0]);
  MPI_Isend(&out, 1, MPI_INT, Right(), 0, MPI_COMM_WORLD, &all[2]);
  MPI_Request handle = all[1];
  MPI_Grequest_complete(handle);
  MPI_Waitall(3, all, statuses);
  CHECK_EQ(in, 9);
  CHECK_STATUS(statuses[1], 33, 44, MPI_INT, 5);
  CHECK_EQ(frees, 3);
  /* Freed by the user: the callback runs when it is complete. */
  MPI_Grequest_start(Query, Free, Cancel, &state, &request);
  handle = request;
  MPI_Grequest_complete(handle);
  MPI_Request_free(&request);
  CHECK_EQ(frees, 4);
  MPI_Status_set_cancelled(&status, 1);
  MPI_Test_cancelled(&status, &flag);
  CHECK(flag);
  MPI_Status_set_elements(&status, MPI_DOUBLE, 12);
  MPI_Get_count(&status, MPI_BYTE, &flag);
  CHECK_EQ(flag, 96);
  MPI_Test_cancelled(&status, &flag);
  CHECK(flag);
  return End();
}
