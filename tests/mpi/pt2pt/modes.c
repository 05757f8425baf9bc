/* The send modes (MPI 4.0 section 3.4): synchronous, ready, buffered, each blocking and not. */
#include "tests/mpi/check.h"

enum { kBig = 300000 };

/* A synchronous send completes only after its receive has started: before the partner's token it cannot have. */
static void SynchronousWaitsForTheReceive(void) {
  if (world_rank > 1 || world_size < 2) return;
  if (world_rank == 0) {
    for (int bytes = 1; bytes <= kBig; bytes += kBig - 1) {
      char* buffer = malloc(bytes);
      FillPattern(buffer, bytes, 0, 1);
      MPI_Request request;
      int done = -1;
      MPI_Issend(buffer, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
      for (int i = 0; i < 100; i++) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        CHECK_EQ(done, 0);
      }
      MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Ssend(buffer, bytes, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
      free(buffer);
    }
  } else {
    for (int bytes = 1; bytes <= kBig; bytes += kBig - 1) {
      char* buffer = malloc(bytes);
      MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Recv(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_PATTERN(buffer, bytes, 0, 1);
      MPI_Recv(buffer, bytes, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_PATTERN(buffer, bytes, 0, 1);
      free(buffer);
    }
  }
}

static void ReadyFindsThePostedReceive(void) {
  const int right = Right(), left = Left();
  int in[2] = {-1, -1}, out[2] = {world_rank, world_rank + 1000};
  MPI_Request requests[2], send;
  MPI_Irecv(&in[0], 1, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&in[1], 1, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Rsend(&out[0], 1, MPI_INT, right, 1, MPI_COMM_WORLD);
  MPI_Irsend(&out[1], 1, MPI_INT, right, 2, MPI_COMM_WORLD, &send);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK_EQ(in[0], left);
  CHECK_EQ(in[1], left + 1000);
}

/* A buffered send is local: all ranks send first, whatever the size, then receive. */
static void BufferedIsLocal(void) {
  const int right = Right(), left = Left();
  int needed;
  MPI_Pack_size(kBig, MPI_BYTE, MPI_COMM_WORLD, &needed);
  const int bytes = 3 * (needed + MPI_BSEND_OVERHEAD);
  void *space = malloc(bytes), *detached = NULL;
  int detached_bytes = 0;
  char *out = malloc(kBig), *in = malloc(kBig);
  MPI_Buffer_attach(space, bytes);
  for (int round = 0; round < 3; round++) {
    MPI_Request request;
    FillPattern(out, kBig, world_rank, 10);
    MPI_Bsend(out, kBig, MPI_BYTE, right, 10, MPI_COMM_WORLD);
    FillPattern(out, kBig, world_rank, 11);  /* the buffer is ours again at once */
    MPI_Bsend(out, 100, MPI_BYTE, right, 11, MPI_COMM_WORLD);
    MPI_Ibsend(out, kBig, MPI_BYTE, right, 12, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    memset(out, 0, kBig);
    MPI_Recv(in, kBig, MPI_BYTE, left, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_PATTERN(in, kBig, left, 11);
    MPI_Recv(in, kBig, MPI_BYTE, left, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_PATTERN(in, 100, left, 11);
    MPI_Recv(in, kBig, MPI_BYTE, left, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_PATTERN(in, kBig, left, 10);
    /* Detaching waits until the messages have gone; attached again, all of the space is free. */
    MPI_Buffer_detach(&detached, &detached_bytes);
    CHECK(detached == space);
    CHECK_EQ(detached_bytes, bytes);
    MPI_Buffer_attach(space, bytes);
  }
  MPI_Buffer_detach(&detached, &detached_bytes);
  free(space);
  free(in);
  free(out);
}

/* Detach delivers: what was sent before it arrives although the sender never enters MPI for it again. */
static void DetachDelivers(void) {
  static int values[2][1000];
  const int right = Right(), left = Left();
  char space[1000 * sizeof(int) + MPI_BSEND_OVERHEAD];
  void* detached;
  int bytes;
  MPI_Request request;
  MPI_Irecv(values[1], 1000, MPI_INT, left, 20, MPI_COMM_WORLD, &request);
  for (int i = 0; i < 1000; i++) values[0][i] = world_rank * 1000 + i;
  MPI_Buffer_attach(space, sizeof space);
  MPI_Bsend(values[0], 1000, MPI_INT, right, 20, MPI_COMM_WORLD);
  MPI_Buffer_detach(&detached, &bytes);
  memset(space, 0, sizeof space);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < 1000; i++) CHECK_EQ(values[1][i], left * 1000 + i);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  SynchronousWaitsForTheReceive();
  ReadyFindsThePostedReceive();
  BufferedIsLocal();
  DetachDelivers();
  return End();
}
