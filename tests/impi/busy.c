/* busy MILLISECONDS SEED: ranks of several clients that exchange messages of all kinds and check what comes, for so long. Whoever comes to the end says "over RANK". */
#include "tests/mpi/check.h"

#include <stdint.h>

enum { kLongest = 200000, kSteps = 8 };

static uint64_t state;
static unsigned Random(unsigned below) { /* the same at all ranks */
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % below;
}

static char out[kLongest], in[kLongest];

static void AroundTheRing(int message, size_t bytes) {
  MPI_Status status;
  FillPattern(out, bytes, world_rank, message);
  MPI_Sendrecv(out, (int)bytes, MPI_BYTE, Right(), message % 1000, in, kLongest, MPI_BYTE, Left(), message % 1000, MPI_COMM_WORLD, &status);
  CHECK_STATUS(status, Left(), message % 1000, MPI_BYTE, bytes);
  CHECK_PATTERN(in, bytes, Left(), message);
}

/* Each to each, synchronously, received in the order in which they come. */
static void FromAnybody(int message, size_t bytes) {
  const int tag = 2000 + message % 1000; /* others may be a step ahead */
  MPI_Request requests[64];
  int count = 0;
  FillPattern(out, bytes, world_rank, message);
  for (int peer = 0; peer < world_size; peer++) {
    if (peer != world_rank) MPI_Issend(out, (int)bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[count++]);
  }
  for (int i = 1; i < world_size; i++) {
    MPI_Status status;
    MPI_Recv(in, kLongest, MPI_BYTE, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
    CHECK_STATUS(status, status.MPI_SOURCE, tag, MPI_BYTE, bytes);
    CHECK_PATTERN(in, bytes, status.MPI_SOURCE, message);
  }
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

/* Nobody receives it before it is known whether it was cancelled. */
static void ACancelledMessage(void) {
  MPI_Request request;
  MPI_Status status;
  int cancelled, left_cancelled;
  MPI_Issend(out, 100, MPI_BYTE, Right(), 3000, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(cancelled);
  MPI_Sendrecv(&cancelled, 1, MPI_INT, Right(), 3001, &left_cancelled, 1, MPI_INT, Left(), 3001, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!left_cancelled) MPI_Recv(in, 100, MPI_BYTE, Left(), 3000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ACommunicator(void) {
  MPI_Comm part;
  int sum = 0, one = 1, size;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &part);
  MPI_Comm_size(part, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part);
  CHECK_EQ(sum, size);
  MPI_Comm_free(&part);
}

static void Collectives(int message, int count) {
  static int values[kLongest / sizeof(int)], sums[kLongest / sizeof(int)];
  const int root = message % world_size;
  for (int i = 0; i < count; i++) values[i] = world_rank == root ? message + i : 0;
  MPI_Bcast(values, count, MPI_INT, root, MPI_COMM_WORLD);
  CHECK_EQ(values[count - 1], message + count - 1);
  MPI_Allreduce(values, sums, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(sums[count - 1], world_size * values[count - 1]);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  const double end = MPI_Wtime() + atof(argv[1]) / 1000;
  state = strtoull(argv[2], NULL, 10);
  for (int goes_on = 1, message = 0; goes_on;) {
    for (int step = 0; step < kSteps; step++, message++) {
      const unsigned kind = Random(6), bytes = Random(2) ? Random(2000) : Random(kLongest);
      if (kind < 2) AroundTheRing(message, bytes);
      if (kind == 2) FromAnybody(message, bytes);
      if (kind == 3) ACancelledMessage();
      if (kind == 4) ACommunicator();
      if (kind == 5) Collectives(message, 1 + (int)(bytes / sizeof(int) / 2));
    }
    goes_on = MPI_Wtime() < end;
    MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  printf("over %d\n", world_rank);
  fflush(stdout);
  return End();
}
