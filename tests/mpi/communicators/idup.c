/* MPI_Comm_idup (MPI 4.0 section 7.4.2): other collectives between its start and its end, several at once, in different
 * orders. */
#include "tests/mpi/check.h"

static void RingOn(MPI_Comm comm, int message) {
  int rank, size, in = -1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int out = message + rank, left = (rank + size - 1) % size;
  MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 5, &in, 1, MPI_INT, left, 5, comm, MPI_STATUS_IGNORE);
  CHECK_EQ(in, message + left);
}

static void Alone(void) {
  MPI_Comm comm;
  MPI_Request request;
  int result;
  MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(request == MPI_REQUEST_NULL);
  MPI_Comm_compare(MPI_COMM_WORLD, comm, &result);
  CHECK_EQ(result, MPI_CONGRUENT);
  RingOn(comm, 100);
  MPI_Comm_free(&comm);
}

/* Ranks differ in how far the duplication has come when they start the collectives that follow. */
static void AmongCollectives(void) {
  for (int round = 0; round < 20; round++) {
    MPI_Comm comm;
    MPI_Request request;
    int flag = 0, sum, one = 1;
    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
    for (int i = 0; i < (world_rank * 7 + round) % 50 && !flag; i++) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(sum, world_size);
    int root = round % world_size, value = world_rank == root ? round : -1;
    MPI_Bcast(&value, 1, MPI_INT, root, MPI_COMM_WORLD);
    CHECK_EQ(value, round);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    RingOn(comm, 10 * round);
    MPI_Comm_free(&comm);
  }
}

static void SeveralAtOnce(void) {
  enum { kCount = 8 };
  MPI_Comm comms[kCount], parents[2];
  MPI_Request requests[kCount];
  MPI_Comm_dup(MPI_COMM_WORLD, &parents[0]);
  MPI_Comm_dup(MPI_COMM_WORLD, &parents[1]);
  for (int i = 0; i < kCount; i++) MPI_Comm_idup(parents[i % 2], &comms[i], &requests[i]);
  MPI_Waitall(kCount, requests, MPI_STATUSES_IGNORE);
  /* All are apart: each has a receive posted before any message is sent. */
  int in[kCount], out[kCount];
  for (int i = 0; i < kCount; i++) {
    in[i] = -1;
    MPI_Irecv(&in[i], 1, MPI_INT, Left(), 5, comms[i], &requests[i]);
  }
  for (int i = kCount - 1; i >= 0; i--) {
    out[i] = 1000 * i + world_rank;
    MPI_Send(&out[i], 1, MPI_INT, Right(), 5, comms[i]);
  }
  MPI_Waitall(kCount, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kCount; i++) {
    CHECK_EQ(in[i], 1000 * i + Left());
    MPI_Comm_free(&comms[i]);
  }
  MPI_Comm_free(&parents[0]);
  MPI_Comm_free(&parents[1]);
}

/* One duplication waits for a rank that first makes another communicator: neither may hold the other up. */
static void AcrossABlockingOne(void) {
  MPI_Comm a, b, of_a, of_b;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &a);
  MPI_Comm_dup(MPI_COMM_WORLD, &b);
  for (int round = 0; round < 10; round++) {
    if ((world_rank + round) % 2 == 0) {
      MPI_Comm_idup(a, &of_a, &request);
      MPI_Comm_dup(b, &of_b);
    } else {
      MPI_Comm_dup(b, &of_b);
      MPI_Comm_idup(a, &of_a, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    RingOn(of_a, 10);
    RingOn(of_b, 20);
    MPI_Comm_free(&of_a);
    MPI_Comm_free(&of_b);
  }
  MPI_Comm_free(&a);
  MPI_Comm_free(&b);
}

static void OfAnIntercommunicator(void) {
  MPI_Comm half, inter, comm;
  MPI_Request request;
  int size, out = world_rank, low = world_rank % 2 == 0, flag;
  if (world_size < 2) return;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? 1 : 0, 9, &inter);
  MPI_Comm_idup(inter, &comm, &request);
  int sum = -1, expected = 0;
  MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_SUM, inter);
  for (int i = 1 - world_rank % 2; i < world_size; i += 2) expected += i;
  CHECK_EQ(sum, expected);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_test_inter(comm, &flag);
  CHECK(flag);
  sum = -1;
  MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK_EQ(sum, expected);
  MPI_Comm_remote_size(comm, &size);
  CHECK_EQ(size, low ? world_size / 2 : (world_size + 1) / 2);
  MPI_Comm_free(&comm);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  Alone();
  AmongCollectives();
  SeveralAtOnce();
  AcrossABlockingOne();
  OfAnIntercommunicator();
  return End();
}
