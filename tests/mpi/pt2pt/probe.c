/* Probe and matched probe (MPI 4.0 section 3.8). */
#include "tests/mpi/check.h"

/* Sizes are learnt by probing; the receive gets exactly the message that was seen. */
static void ProbeThenReceive(void) {
  if (world_rank == 0) {
    for (int i = 0; i < 20 * (world_size - 1); i++) {
      MPI_Status status, second;
      int bytes;
      MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      char* buffer = malloc(bytes + 1);
      MPI_Recv(buffer, bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &second);
      CHECK_STATUS(second, status.MPI_SOURCE, status.MPI_TAG, MPI_BYTE, status.MPI_TAG * 9973);
      CHECK_PATTERN(buffer, bytes, status.MPI_SOURCE, status.MPI_TAG);
      free(buffer);
    }
  } else {
    char* buffer = malloc(20 * 9973);
    for (int i = 0; i < 20; i++) {
      FillPattern(buffer, i * 9973, world_rank, i);
      MPI_Send(buffer, i * 9973, MPI_BYTE, 0, i, MPI_COMM_WORLD);
    }
    free(buffer);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void IprobeFindsNothingAndThenSomething(void) {
  int found = 1, out = 5, in = 0;
  MPI_Status status;
  MPI_Iprobe(world_rank, 1, MPI_COMM_WORLD, &found, &status);
  CHECK_EQ(found, 0);
  MPI_Request request;
  MPI_Isend(&out, 1, MPI_INT, world_rank, 1, MPI_COMM_WORLD, &request);
  MPI_Iprobe(world_rank, 2, MPI_COMM_WORLD, &found, &status);
  CHECK_EQ(found, 0);
  for (found = 0; !found;) MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &found, &status);
  CHECK_STATUS(status, world_rank, 1, MPI_INT, 1);
  MPI_Recv(&in, 1, MPI_INT, world_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQ(in, 5);
}

/* A matched message is out of reach of other receives. */
static void MatchedMessageIsTaken(void) {
  const int right = Right(), left = Left();
  static char out[2][100000], in[100000];
  MPI_Request sends[2], receive;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  for (int i = 0; i < 2; i++) {
    FillPattern(out[i], sizeof in, world_rank, i);
    MPI_Isend(out[i], sizeof in, MPI_BYTE, right, 7, MPI_COMM_WORLD, &sends[i]);
  }
  MPI_Mprobe(left, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
  CHECK_STATUS(status, left, 7, MPI_BYTE, sizeof in);
  CHECK(message != MPI_MESSAGE_NULL);
  MPI_Recv(in, sizeof in, MPI_BYTE, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_PATTERN(in, sizeof in, left, 1);
  MPI_Mrecv(in, sizeof in, MPI_BYTE, &message, &status);
  CHECK_PATTERN(in, sizeof in, left, 0);
  CHECK_STATUS(status, left, 7, MPI_BYTE, sizeof in);
  CHECK_EQ(message, MPI_MESSAGE_NULL);
  MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
  /* Nonblocking. */
  int flag = 0;
  MPI_Isend(out[0], 10, MPI_BYTE, right, 8, MPI_COMM_WORLD, &sends[0]);
  while (!flag) MPI_Improbe(left, 8, MPI_COMM_WORLD, &flag, &message, &status);
  MPI_Imrecv(in, sizeof in, MPI_BYTE, &message, &receive);
  MPI_Wait(&receive, &status);
  CHECK_STATUS(status, left, 8, MPI_BYTE, 10);
  CHECK_PATTERN(in, 10, left, 0);
  MPI_Wait(&sends[0], MPI_STATUS_IGNORE);
  MPI_Improbe(left, 9, MPI_COMM_WORLD, &flag, &message, &status);
  CHECK_EQ(flag, 0);
  CHECK_EQ(message, MPI_MESSAGE_NULL);
}

static void NullProcess(void) {
  int flag = 0;
  char byte;
  MPI_Status status;
  MPI_Message message;
  MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
  CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_BYTE, 0);
  MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &status);
  CHECK(flag);
  MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status);
  CHECK_EQ(message, MPI_MESSAGE_NO_PROC);
  MPI_Mrecv(&byte, 1, MPI_BYTE, &message, &status);
  CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_BYTE, 0);
  CHECK_EQ(message, MPI_MESSAGE_NULL);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  ProbeThenReceive();
  IprobeFindsNothingAndThenSomething();
  MatchedMessageIsTaken();
  NullProcess();
  return End();
}
