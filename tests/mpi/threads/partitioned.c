/* Partitions that several threads make ready at once, and for which several threads look at once. */
#include "tests/mpi/threads/threads.h"

enum { kEach = 64, kParts = kThreads * kEach, kInts = 16, kRounds = 20 };

static int out[kParts][kInts], in[kParts][kInts], round_number;
static MPI_Request requests[2]; /* to the right, from the left */

static int Value(int rank, int partition, int i) { return rank * 1000003 + round_number * 10007 + partition * 17 + i; }

/* Every fourth partition, those that the others have between them. */
static void MakeReady(int thread) {
  for (int k = 0; k < kEach; k++) {
    const int p = k * kThreads + thread;
    for (int i = 0; i < kInts; i++) out[p][i] = Value(world_rank, p, i);
    MPI_Pready(p, requests[0]);
  }
  for (int k = kEach - 1; k >= 0; k--) {
    const int p = k * kThreads + thread;
    int wrong = 0;
    for (int here = 0; !here;) MPI_Parrived(requests[1], p, &here);
    for (int i = 0; i < kInts; i++) wrong += in[p][i] != Value(Left(), p, i);
    if (wrong != 0) REPORT("partition %d of round %d is wrong", p, round_number);
  }
}

int main(int argc, char** argv) {
  BeginThreads(&argc, &argv);
  MPI_Psend_init(out, kParts, kInts, MPI_INT, Right(), 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(in, kParts, kInts, MPI_INT, Left(), 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  for (round_number = 0; round_number < kRounds; round_number++) {
    memset(in, -1, sizeof in);
    MPI_Startall(2, requests);
    InThreads(MakeReady);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  return End();
}
