/* More messages than the receiver is ready for: unexpected ones by the thousand, small and large, drained late and in another order. */
#include "tests/mpi/check.h"

enum { kSmall = 5000, kLarge = 20, kLargeBytes = 400000 };

/* All ranks send all of theirs to the right before they look at their own. */
static void SmallOnes(void) {
  MPI_Request* requests = malloc(sizeof *requests * kSmall);
  int* out = malloc(sizeof(int) * kSmall);
  for (int i = 0; i < kSmall; i++) {
    out[i] = world_rank * kSmall + i;
    MPI_Isend(&out[i], 1, MPI_INT, Right(), i % 100, MPI_COMM_WORLD, &requests[i]);
  }
  for (int tag = 99; tag >= 0; tag--) {
    for (int i = tag; i < kSmall; i += 100) {
      int in = -1;
      MPI_Recv(&in, 1, MPI_INT, Left(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_EQ(in, Left() * kSmall + i);
    }
  }
  MPI_Waitall(kSmall, requests, MPI_STATUSES_IGNORE);
  free(requests);
  free(out);
}

static void LargeOnes(void) {
  MPI_Request requests[kLarge];
  char* out = malloc((size_t)kLarge * kLargeBytes);
  char* in = malloc(kLargeBytes);
  for (int i = 0; i < kLarge; i++) {
    FillPattern(out + (size_t)i * kLargeBytes, kLargeBytes, world_rank, i);
    MPI_Isend(out + (size_t)i * kLargeBytes, kLargeBytes, MPI_BYTE, Right(), i, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = kLarge - 1; i >= 0; i--) {
    MPI_Recv(in, kLargeBytes, MPI_BYTE, Left(), i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_PATTERN(in, kLargeBytes, Left(), i);
  }
  MPI_Waitall(kLarge, requests, MPI_STATUSES_IGNORE);
  free(out);
  free(in);
}

/* A blocking stream of 20 MB of middling messages into a receiver that has posted another receive and waits for its sender's end. */
static void BehindAnotherReceive(void) {
  if (world_size < 2 || world_rank > 1) return;
  enum { kMessages = 2000, kBytes = 10000 };
  static char buffer[kBytes];
  if (world_rank == 0) {
    for (int i = 0; i < kMessages; i++) {
      FillPattern(buffer, kBytes, 0, i);
      MPI_Send(buffer, kBytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    }
  } else {
    for (int i = 0; i < kMessages; i++) {
      memset(buffer, 0, kBytes);
      MPI_Recv(buffer, kBytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_PATTERN(buffer, kBytes, 0, i);
    }
  }
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  SmallOnes();
  LargeOnes();
  BehindAnotherReceive();
  return End();
}
