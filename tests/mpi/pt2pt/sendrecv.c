/* MPI_Sendrecv and its kin (MPI 4.0 section 3.10), MPI_PROC_NULL (3.11) and messages to oneself. */
#include "tests/mpi/check.h"

static void Ring(int count) {
  const int right = Right(), left = Left();
  int *out = malloc((count + 1) * sizeof *out), *in = malloc((count + 1) * sizeof *in);
  MPI_Status status;
  for (int i = 0; i < count; i++) out[i] = world_rank * 7 + i;
  in[count] = -5;
  MPI_Sendrecv(out, count, MPI_INT, right, 1, in, count + 1, MPI_INT, left, 1, MPI_COMM_WORLD, &status);
  CHECK_STATUS(status, left, 1, MPI_INT, count);
  for (int i = 0; i < count; i++) CHECK_EQ(in[i], left * 7 + i);
  CHECK_EQ(in[count], -5);
  MPI_Sendrecv_replace(out, count, MPI_INT, left, 2, right, 2, MPI_COMM_WORLD, &status);
  CHECK_STATUS(status, right, 2, MPI_INT, count);
  for (int i = 0; i < count; i++) CHECK_EQ(out[i], right * 7 + i);
  MPI_Request request;
  for (int i = 0; i < count; i++) out[i] = world_rank * 7 + i;
  MPI_Isendrecv(out, count, MPI_INT, right, 3, in, count, MPI_INT, left, 3, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, &status);
  for (int i = 0; i < count; i++) CHECK_EQ(in[i], left * 7 + i);
  MPI_Isendrecv_replace(out, count, MPI_INT, right, 4, left, 4, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, &status);
  for (int i = 0; i < count; i++) CHECK_EQ(out[i], left * 7 + i);
  free(out);
  free(in);
}

/* A column goes out and a row comes in, in one array. */
static void ReplaceWithDerivedType(void) {
  const int right = Right(), left = Left();
  int matrix[5][5];
  MPI_Datatype column;
  MPI_Type_vector(5, 1, 5, MPI_INT, &column);
  MPI_Type_commit(&column);
  for (int i = 0; i < 25; i++) matrix[i / 5][i % 5] = world_rank * 100 + i;
  MPI_Sendrecv_replace(&matrix[0][1], 1, column, right, 5, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < 25; i++) CHECK_EQ(matrix[i / 5][i % 5], (i % 5 == 1 ? left : world_rank) * 100 + i);
  MPI_Type_free(&column);
}

static void NullProcess(void) {
  int in = 77, out = 1;
  MPI_Status status;
  MPI_Send(&out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Ssend(&out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Bsend(&out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
  CHECK_EQ(in, 77);
  CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Isend(&out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, statuses);
  if (!MpichDeviates("MPI_Waitall gives source and tag 0 for a receive from MPI_PROC_NULL"))
    CHECK_STATUS(statuses[1], MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
  /* A line: the ends talk to nobody. */
  const int right = world_rank + 1 < world_size ? world_rank + 1 : MPI_PROC_NULL;
  const int left = world_rank > 0 ? world_rank - 1 : MPI_PROC_NULL;
  out = world_rank;
  in = -1;
  MPI_Sendrecv(&out, 1, MPI_INT, right, 6, &in, 1, MPI_INT, left, 6, MPI_COMM_WORLD, &status);
  CHECK_EQ(in, world_rank > 0 ? left : -1);
  CHECK_EQ(status.MPI_SOURCE, left);
}

static void Self(void) {
  int in[2] = {0, 0}, out[2] = {4, 5};
  MPI_Request request;
  MPI_Status status;
  MPI_Irecv(in, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &request);
  MPI_Send(out, 2, MPI_INT, 0, 8, MPI_COMM_SELF);
  MPI_Wait(&request, &status);
  CHECK_STATUS(status, 0, 8, MPI_INT, 2);
  CHECK_EQ(in[0] * 10 + in[1], 45);
  MPI_Isend(out, 1, MPI_INT, world_rank, 9, MPI_COMM_WORLD, &request);
  MPI_Recv(&in[1], 1, MPI_INT, world_rank, 9, MPI_COMM_WORLD, &status);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQ(in[1], 4);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  Ring(0);
  Ring(1);
  Ring(1000);
  Ring(500000);
  ReplaceWithDerivedType();
  NullProcess();
  Self();
  return End();
}
