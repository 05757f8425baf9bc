/* A message that is longer than its receive is MPI_ERR_TRUNCATE there; what fits arrived, nothing behind it, and later messages are whole. */
#include "tests/mpi/check.h"

static void Try(int sent, int room) {
  char *out = malloc(sent), *in = malloc(sent + 1);
  MPI_Request requests[2];
  MPI_Status statuses[2];
  FillPattern(out, sent, world_rank, sent);
  memset(in, 0x55, sent + 1);
  /* The receive posted before, through a wait for all. */
  MPI_Irecv(in, room, MPI_BYTE, Left(), 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Isend(out, sent, MPI_BYTE, Right(), 1, MPI_COMM_WORLD, &requests[1]);
  CHECK_CLASS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
  CHECK_CLASS(statuses[0].MPI_ERROR, MPI_ERR_TRUNCATE);
  if (statuses[1].MPI_ERROR == MPI_ERR_PENDING) {  /* neither failed nor complete, says MPI 4.0 section 3.7.5 */
    CHECK_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
  } else {
    CHECK_CLASS(statuses[1].MPI_ERROR, MPI_SUCCESS);
  }
  CHECK_EQ(statuses[0].MPI_SOURCE, Left());
  for (int i = room; i <= sent; i++) CHECK_EQ(in[i], 0x55);
  /* Unexpected, blocking. */
  MPI_Isend(out, sent, MPI_BYTE, Right(), 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_CLASS(MPI_Recv(in, room, MPI_BYTE, Left(), 2, MPI_COMM_WORLD, &statuses[0]), MPI_ERR_TRUNCATE);
  for (int i = room; i <= sent; i++) CHECK_EQ(in[i], 0x55);
  CHECK_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
  /* The next is whole. */
  CHECK_OK(MPI_Sendrecv(out, sent, MPI_BYTE, Right(), 3, in, sent, MPI_BYTE, Left(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK_PATTERN(in, sent, Left(), sent);
  free(out);
  free(in);
}

/* Three chars, or six, are no number of ints. */
static void EndsWithinAnElement(void) {
  MPI_Datatype gaps;
  MPI_Status status;
  MPI_Request request;
  char out[8] = "abcdefg";
  int in[4] = {0}, count;
  if (world_size == 1 && MpichDeviates("takes some of them from the process itself")) return;
  MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  for (int bytes = 0; bytes <= 8; ++bytes) {
    const int class = bytes % 4 == 0 ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
    CHECK_CLASS(MPI_Sendrecv(out, bytes, MPI_CHAR, Right(), 4, in, 1, gaps, Left(), 4, MPI_COMM_WORLD, &status), class);
    MPI_Irecv(in, 1, gaps, Left(), 5, MPI_COMM_WORLD, &request);
    MPI_Send(out, bytes, MPI_CHAR, Right(), 5, MPI_COMM_WORLD);
    CHECK_CLASS(MPI_Wait(&request, &status), class);
    /* Of a type without gaps the count tells it. */
    CHECK_OK(MPI_Sendrecv(out, bytes, MPI_CHAR, Right(), 6, in, 2, MPI_INT, Left(), 6, MPI_COMM_WORLD, &status));
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQ(count, bytes % 4 == 0 ? bytes / 4 : MPI_UNDEFINED);
  }
  MPI_Type_free(&gaps);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Try(10, 5);
  Try(10, 0);
  Try(60000, 59999);
  Try(1000000, 500000);
  Try(1000000, 100);
  EndsWithinAnElement();
  return End();
}
