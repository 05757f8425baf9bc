/* Persistent requests (MPI 4.0 section 3.9): all modes, started one by one and together, inactive ones in wait and test, free. */
#include "tests/mpi/check.h"

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  enum { kCount = 20000, kRounds = 20 };
  static int out[4][kCount], in[4][kCount];
  static char space[2 * (kCount * sizeof(int) + MPI_BSEND_OVERHEAD)];
  MPI_Request requests[8];
  MPI_Status statuses[8];
  MPI_Buffer_attach(space, sizeof space);
  for (int k = 0; k < 4; k++) {
    const int count = k % 2 ? kCount : 3;
    MPI_Recv_init(in[k], count, MPI_INT, Left(), k, MPI_COMM_WORLD, &requests[k]);
  }
  MPI_Send_init(out[0], 3, MPI_INT, Right(), 0, MPI_COMM_WORLD, &requests[4]);
  MPI_Ssend_init(out[1], kCount, MPI_INT, Right(), 1, MPI_COMM_WORLD, &requests[5]);
  MPI_Rsend_init(out[2], 3, MPI_INT, Right(), 2, MPI_COMM_WORLD, &requests[6]);
  MPI_Bsend_init(out[3], kCount, MPI_INT, Right(), 3, MPI_COMM_WORLD, &requests[7]);
  /* Inactive requests are complete with an empty status. */
  int flag = 0, index = 0;
  MPI_Status status;
  MPI_Test(&requests[0], &flag, &status);
  CHECK(flag);
  CHECK_STATUS(status, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_INT, 0);
  MPI_Wait(&requests[5], &status);
  MPI_Waitany(8, requests, &index, &status);
  CHECK_EQ(index, MPI_UNDEFINED);
  for (int round = 0; round < kRounds; round++) {
    for (int k = 0; k < 4; k++) {
      for (int i = 0; i < kCount; i++) out[k][i] = world_rank * 1000 + round * 10 + k + i, in[k][i] = -1;
    }
    MPI_Startall(4, requests);
    MPI_Barrier(MPI_COMM_WORLD);  /* ready sends find their receives */
    if (round % 2) {
      MPI_Startall(4, requests + 4);
    } else {
      for (int k = 7; k >= 4; k--) MPI_Start(&requests[k]);
    }
    if (round % 3 == 0) {
      for (int done = 0; !done;) MPI_Testall(8, requests, &done, statuses);
    } else {
      MPI_Waitall(8, requests, statuses);
    }
    for (int k = 0; k < 4; k++) {
      const int count = k % 2 ? kCount : 3;
      CHECK_STATUS(statuses[k], Left(), k, MPI_INT, count);
      CHECK(requests[k] != MPI_REQUEST_NULL && requests[k + 4] != MPI_REQUEST_NULL);
      for (int i = 0; i < count; i++) CHECK_EQ(in[k][i], Left() * 1000 + round * 10 + k + i);
    }
  }
  for (int k = 0; k < 8; k++) {
    MPI_Request_free(&requests[k]);
    CHECK_EQ(requests[k], MPI_REQUEST_NULL);
  }
  /* An active persistent request may be freed; the message still goes. */
  MPI_Send_init(out[0], 3, MPI_INT, Right(), 9, MPI_COMM_WORLD, &requests[0]);
  MPI_Start(&requests[0]);
  MPI_Request_free(&requests[0]);
  MPI_Recv(in[0], 3, MPI_INT, Left(), 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(in[0][2], Left() * 1000 + (kRounds - 1) * 10 + 2);
  /* To and from nobody. */
  MPI_Recv_init(in[0], 3, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(out[0], 3, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < 3; round++) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, statuses);
    if (!MpichDeviates("a persistent receive from MPI_PROC_NULL has the source MPI_ANY_SOURCE"))
      CHECK_STATUS(statuses[0], MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  void* detached;
  int bytes;
  MPI_Buffer_detach(&detached, &bytes);
  return End();
}
