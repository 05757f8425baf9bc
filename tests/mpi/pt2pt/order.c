/* Matching (MPI 4.0 section 3.5): messages do not overtake each other, wild cards see them in order, tags choose among them. */
#include "tests/mpi/check.h"

enum { kMessages = 200 };

/* Every rank but 0 sends numbered messages of alternating size; 0 receives them by wild card and counts per source. */
static void AnySourceAnyTag(void) {
  static int buffer[20000];
  if (world_rank != 0) {
    for (int i = 0; i < kMessages; i++) {
      buffer[0] = i;
      MPI_Send(buffer, i % 10 == 0 ? 20000 : 1 + i % 5, MPI_INT, 0, i % 7, MPI_COMM_WORLD);
    }
    return;
  }
  int next[64] = {0};
  for (int i = 0; i < kMessages * (world_size - 1); i++) {
    MPI_Status status;
    MPI_Recv(buffer, 20000, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    const int source = status.MPI_SOURCE, number = next[source]++;
    CHECK_EQ(buffer[0], number);
    CHECK_STATUS(status, source, number % 7, MPI_INT, number % 10 == 0 ? 20000 : 1 + number % 5);
  }
}

/* Receives in the reverse order of tags take each its own message. */
static void TagsInReverse(void) {
  if (world_size < 2 || world_rank > 1) return;
  int values[kMessages];
  if (world_rank == 1) {
    for (int i = 0; i < kMessages; i++) MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    return;
  }
  for (int i = kMessages - 1; i >= 0; i--) {
    MPI_Recv(&values[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(values[i], i);
  }
}

/* Posted receives are matched in the order of posting, also when a wild card stands before a receive that names its tag. */
static void PostedOrder(void) {
  if (world_size < 2 || world_rank > 1) return;
  int values[4] = {-1, -1, -1, -1};
  MPI_Request requests[4];
  MPI_Status statuses[4];
  if (world_rank == 0) {
    MPI_Irecv(&values[0], 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&values[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(&values[2], 1, MPI_INT, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[2]);
    MPI_Irecv(&values[3], 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &requests[3]);
    MPI_Send(NULL, 0, MPI_INT, 1, 9, MPI_COMM_WORLD);
    MPI_Waitall(4, requests, statuses);
    /* Tags 4, 5, 5, 5 arrive: 4 finds the first wild card, the fives the rest from the front. */
    CHECK_EQ(values[1], 40);
    CHECK_EQ(values[0], 50);
    CHECK_EQ(values[2], 51);
    CHECK_EQ(values[3], 52);
    CHECK_EQ(statuses[1].MPI_TAG, 4);
  } else {
    int send[4] = {40, 50, 51, 52};
    MPI_Recv(NULL, 0, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++) MPI_Send(&send[i], 1, MPI_INT, 0, i == 0 ? 4 : 5, MPI_COMM_WORLD);
  }
}

/* The same source and tag on two communicators do not mix. */
static void Contexts(void) {
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  int a = -1, b = -1, first = 1, second = 2;
  const int right = Right(), left = Left();
  MPI_Request requests[4];
  MPI_Isend(&first, 1, MPI_INT, right, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&second, 1, MPI_INT, right, 3, other, &requests[1]);
  MPI_Irecv(&b, 1, MPI_INT, left, 3, other, &requests[2]);
  MPI_Irecv(&a, 1, MPI_INT, left, 3, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  CHECK_EQ(a, 1);
  CHECK_EQ(b, 2);
  MPI_Comm_free(&other);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  AnySourceAnyTag();
  MPI_Barrier(MPI_COMM_WORLD);
  TagsInReverse();
  PostedOrder();
  Contexts();
  /* The largest tag that the attribute promises works. */
  int *largest, found, in = 0, out = 17;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &found);
  CHECK(found && *largest >= 32767);
  MPI_Status status;
  MPI_Sendrecv(&out, 1, MPI_INT, world_rank, *largest, &in, 1, MPI_INT, world_rank, *largest, MPI_COMM_WORLD, &status);
  CHECK_STATUS(status, world_rank, *largest, MPI_INT, 1);
  CHECK_EQ(in, 17);
  return End();
}
