/* MPI_Cancel (MPI 4.0 section 3.8.4): a receive that nothing matches is cancelled; its buffer and later messages are untouched. A send
 * is cancelled or delivered, never both. */
#include "tests/mpi/check.h"

static void Receives(void) {
  int in[2] = {-1, -1}, out = 7, cancelled = 0;
  MPI_Request request;
  MPI_Status status;
  MPI_Irecv(&in[0], 1, MPI_INT, Left(), 1, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(cancelled);
  CHECK_EQ(in[0], -1);
  CHECK_EQ(request, MPI_REQUEST_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  /* The message goes to the next receive. */
  MPI_Irecv(&in[1], 1, MPI_INT, Left(), 1, MPI_COMM_WORLD, &request);
  MPI_Send(&out, 1, MPI_INT, Right(), 1, MPI_COMM_WORLD);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(!cancelled);
  CHECK_EQ(in[0], -1);
  CHECK_EQ(in[1], 7);
  /* Wild cards. */
  MPI_Irecv(in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(cancelled);
  /* A complete receive is past cancelling. */
  MPI_Irecv(in, 1, MPI_INT, world_rank, 2, MPI_COMM_WORLD, &request);
  MPI_Send(&out, 1, MPI_INT, world_rank, 2, MPI_COMM_WORLD);
  for (int done = 0; !done;) MPI_Request_get_status(request, &done, &status);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(!cancelled);
  /* Persistent, then started again. */
  MPI_Recv_init(in, 1, MPI_INT, world_rank, 3, MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(cancelled);
  MPI_Start(&request);
  MPI_Send(&out, 1, MPI_INT, world_rank, 3, MPI_COMM_WORLD);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(!cancelled);
  MPI_Request_free(&request);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void Sends(int bytes) {
  char* buffer = malloc(bytes);
  int cancelled = 0, theirs = 0, found = 0;
  MPI_Request request;
  MPI_Status status;
  FillPattern(buffer, bytes, world_rank, 4);
  MPI_Isend(buffer, bytes, MPI_BYTE, Right(), 4, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  /* Completes whatever the receiver does: cancelled, or delivered to a buffer of the library's. */
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  MPI_Sendrecv(&cancelled, 1, MPI_INT, Right(), 5, &theirs, 1, MPI_INT, Left(), 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (theirs) {
    MPI_Barrier(MPI_COMM_SELF);
    MPI_Iprobe(Left(), 4, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    CHECK(!found);
  } else {
    char* in = malloc(bytes);
    MPI_Recv(in, bytes, MPI_BYTE, Left(), 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_PATTERN(in, bytes, Left(), 4);
    free(in);
  }
  free(buffer);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  Receives();
  Sends(10);
  if (!MpichDeviates("waits for the receiver of a large send that was cancelled")) Sends(1000000);
  return End();
}
