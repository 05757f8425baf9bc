/* Messages of every size around the boundaries of eager and rendezvous, both ways between all pairs, blocking and not; and to self. */
#include "tests/mpi/check.h"

static const int kSizes[] = {0, 1, 7, 8, 63, 64, 65, 1023, 1024, 4095, 4096, 8191, 8192, 8193, 16384, 32767, 32768, 65535, 65536, 65537,
                             131072, 262143, 262144, 262145, 1048576, 1048577, 4194304};
enum { kCount = sizeof kSizes / sizeof kSizes[0], kLargest = 4194304 };

static void PingPong(int partner, char* buffer) {
  for (int i = 0; i < kCount; i++) {
    MPI_Status status;
    if (world_rank < partner) {
      FillPattern(buffer, kSizes[i], world_rank, i);
      MPI_Send(buffer, kSizes[i], MPI_BYTE, partner, i, MPI_COMM_WORLD);
    }
    memset(buffer, 0xee, kSizes[i]);
    MPI_Recv(buffer, kLargest, MPI_BYTE, partner, i, MPI_COMM_WORLD, &status);
    CHECK_STATUS(status, partner, i, MPI_BYTE, kSizes[i]);
    CHECK_PATTERN(buffer, kSizes[i], partner, i);
    if (world_rank > partner) {
      FillPattern(buffer, kSizes[i], world_rank, i);
      MPI_Send(buffer, kSizes[i], MPI_BYTE, partner, i, MPI_COMM_WORLD);
    }
  }
}

/* Both send at once; `receive_first`: the receive is posted before the send, so that the message finds it. */
static void Crossing(int partner, char* out, char* in, int receive_first) {
  for (int i = 0; i < kCount; i++) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    FillPattern(out, kSizes[i], world_rank, i);
    memset(in, 0xee, kSizes[i]);
    if (receive_first) {
      MPI_Irecv(in, kSizes[i], MPI_BYTE, partner, 100 + i, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(out, kSizes[i], MPI_BYTE, partner, 100 + i, MPI_COMM_WORLD, &requests[1]);
    } else {
      MPI_Isend(out, kSizes[i], MPI_BYTE, partner, 100 + i, MPI_COMM_WORLD, &requests[1]);
      MPI_Irecv(in, kSizes[i], MPI_BYTE, partner, 100 + i, MPI_COMM_WORLD, &requests[0]);
    }
    MPI_Waitall(2, requests, statuses);
    CHECK_STATUS(statuses[0], partner, 100 + i, MPI_BYTE, kSizes[i]);
    CHECK_PATTERN(in, kSizes[i], partner, i);
    CHECK_PATTERN(out, kSizes[i], world_rank, i);
    CHECK_EQ(requests[0], MPI_REQUEST_NULL);
    CHECK_EQ(requests[1], MPI_REQUEST_NULL);
  }
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  char* out = malloc(kLargest);
  char* in = malloc(kLargest);
  for (int distance = 1; distance < world_size; distance++) {
    const int partner = world_rank ^ distance;  /* each pair meets once */
    if (partner < world_size) PingPong(partner, out);
  }
  for (int distance = 1; distance < world_size; distance++) {
    const int partner = world_rank ^ distance;
    if (partner < world_size) Crossing(partner, out, in, distance & 1);
  }
  Crossing(world_rank, out, in, 1);
  Crossing(world_rank, out, in, 0);
  free(in);
  free(out);
  return End();
}
