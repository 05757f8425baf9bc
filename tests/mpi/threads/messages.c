/* Four threads per rank send and receive at once: by tag, by communicator, to self, with wild cards, with probes. */
#include "tests/mpi/threads/threads.h"

static MPI_Comm comms[kThreads];

/* Each thread's ring has its own tag. */
static void RingByTag(int t) {
  enum { kRounds = 50, kMost = 30000 };
  char *out = malloc(kMost), *in = malloc(kMost);
  for (int i = 0; i < kRounds; i++) {
    const int bytes = i % 10 == 0 ? kMost : 100 + i;
    MPI_Request request;
    MPI_Status status;
    FillPattern(out, bytes, world_rank, t * 1000 + i);
    MPI_Isend(out, bytes, MPI_BYTE, Right(), t, MPI_COMM_WORLD, &request);
    MPI_Recv(in, kMost, MPI_BYTE, Left(), t, MPI_COMM_WORLD, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_STATUS(status, Left(), t, MPI_BYTE, bytes);
    CHECK_PATTERN(in, bytes, Left(), t * 1000 + i);
  }
  free(out);
  free(in);
}

/* The same tag on a communicator for each thread, with blocking collectives between. */
static void RingByComm(int t) {
  for (int i = 0; i < 30; i++) {
    int out = world_rank * 100 + i, in = -1, sum = -1;
    MPI_Sendrecv(&out, 1, MPI_INT, Right(), 0, &in, 1, MPI_INT, Left(), 0, comms[t], MPI_STATUS_IGNORE);
    CHECK_EQ(in, Left() * 100 + i);
    MPI_Allreduce(&t, &sum, 1, MPI_INT, MPI_SUM, comms[t]);
    CHECK_EQ(sum, t * world_size);
  }
}

/* Two threads receive by matched probe what the other two send: each message once. */
static int received[2 * 100];
static void MatchedProbes(int t) {
  if (t < 2) {
    for (int i = 0; i < 100; i++) {
      int value = t * 100 + i;
      MPI_Send(&value, 1, MPI_INT, world_rank, 7, MPI_COMM_WORLD);
    }
    return;
  }
  for (int i = 0; i < 100; i++) {
    MPI_Message message;
    MPI_Status status;
    int value = -1;
    MPI_Mprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
    if (value >= 0 && value < 200) __atomic_add_fetch(&received[value], 1, __ATOMIC_RELAXED);
  }
}

/* A thread that waits does not keep others from the library: one waits for a message that another sends later. */
static void WaiterAndSender(int t) {
  int token = t;
  if (t == 0) {
    MPI_Recv(&token, 1, MPI_INT, Left(), 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(token, 3);
  } else if (t == 3) {
    for (double start = MPI_Wtime(); MPI_Wtime() - start < 0.05;) {
    }
    MPI_Send(&token, 1, MPI_INT, Right(), 99, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  BeginThreads(&argc, &argv);
  for (int t = 0; t < kThreads; t++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
  InThreads(RingByTag);
  InThreads(RingByComm);
  if (world_size > 1 || !MpichDeviates("a thread that waits for a message from its own process does not let others in")) {
    InThreads(MatchedProbes);
    for (int i = 0; i < 200; i++) CHECK_EQ(received[i], 1);
    InThreads(WaiterAndSender);
  }
  for (int t = 0; t < kThreads; t++) MPI_Comm_free(&comms[t]);
  return End();
}
