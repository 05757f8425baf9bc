/* Partitioned communication (MPI 4.0 chapter 4). */
#include "tests/mpi/check.h"

/* Tags that differ only in their highest bits, received in another order than they were sent in. */
static void LargeTags(void) {
  enum { kTags = 3 };
  const int tags[kTags] = {5, 5 + (1 << 22), 5 + (1 << 26)};
  int values[kTags], got[kTags];
  MPI_Request requests[kTags];
  for (int i = 0; i < kTags && world_rank < 2; i++) {
    const int k = world_rank == 0 ? i : kTags - 1 - i;
    values[k] = 100 + k, got[k] = -1;
    if (world_rank == 0) {
      MPI_Psend_init(&values[k], 1, 1, MPI_INT, 1, tags[k], MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
      MPI_Start(&requests[i]);
      MPI_Pready(0, requests[i]);
    } else {
      MPI_Precv_init(&got[k], 1, 1, MPI_INT, 0, tags[k], MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
      MPI_Start(&requests[i]);
    }
  }
  if (world_rank < 2) MPI_Waitall(kTags, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kTags && world_rank < 2; i++) {
    if (world_rank == 1) CHECK_EQ(got[i], 100 + i);
    MPI_Request_free(&requests[i]);
  }
}

/* Partitioned messages under way while a communicator is made with a tag of the program's own: neither takes the other's messages. */
static void WhileACommunicatorIsMade(void) {
  enum { kUnderWay = 4, kTag = 3 };
  int values[kUnderWay], got[kUnderWay], size;
  MPI_Request requests[kUnderWay];
  MPI_Group group;
  MPI_Comm made;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  for (int i = 0; i < kUnderWay && world_rank == 0; i++) {
    values[i] = 1000 + i;
    MPI_Psend_init(&values[i], 1, 1, MPI_INT, 1, kTag, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
    MPI_Start(&requests[i]);
    MPI_Pready(0, requests[i]);
  }
  for (int i = 0; i < 8; i++) {
    CHECK_OK(MPI_Comm_create_group(MPI_COMM_WORLD, group, kTag << 8 | i, &made));
    MPI_Comm_size(made, &size);
    CHECK_EQ(size, world_size);
    MPI_Comm_free(&made);
  }
  for (int i = 0; i < kUnderWay && world_rank == 1; i++) {
    got[i] = -1;
    MPI_Precv_init(&got[i], 1, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
    MPI_Start(&requests[i]);
  }
  if (world_rank < 2) MPI_Waitall(kUnderWay, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kUnderWay && world_rank < 2; i++) {
    if (world_rank == 1) CHECK_EQ(got[i], 1000 + i);
    MPI_Request_free(&requests[i]);
  }
  MPI_Group_free(&group);
}

/* Communicators come and go, and new ones have the contexts of old ones: what a rank did in an old one does not count in the new. */
static void InOneCommunicatorAfterAnother(void) {
  for (int i = 0; i < 192; i++) {
    const int sender = i % 2 == 0 ? 0 : 2; /* to rank 1, which is the receiver, rank 1, in each pair */
    MPI_Comm pair;
    MPI_Request request;
    int value = i, got = -1;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank == sender || world_rank == 1 ? 0 : MPI_UNDEFINED, world_rank == 1, &pair);
    if (pair == MPI_COMM_NULL) continue;
    if (world_rank == sender) {
      MPI_Psend_init(&value, 1, 1, MPI_INT, 1, 9, pair, MPI_INFO_NULL, &request);
      MPI_Start(&request);
      MPI_Pready(0, request);
    } else {
      MPI_Precv_init(&got, 1, 1, MPI_INT, 0, 9, pair, MPI_INFO_NULL, &request);
      MPI_Start(&request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (world_rank == 1) CHECK_EQ(got, i);
    MPI_Request_free(&request);
    MPI_Comm_free(&pair);
  }
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  enum { kParts = 8, kEach = 500 };
  static int out[kParts * kEach], in[kParts * kEach];
  MPI_Request requests[2];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int code = MPI_Psend_init(out, kParts, kEach, MPI_INT, Right(), 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  int class;
  MPI_Error_class(code, &class);
  /* Weft may say that it does not have it; then it must say so. */
  if (class == MPI_ERR_UNSUPPORTED_OPERATION) return End();
  CHECK_EQ(class, MPI_SUCCESS);
  CHECK_OK(MPI_Precv_init(in, kParts, kEach, MPI_INT, Left(), 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
  for (int round = 0; round < 5; round++) {
    for (int i = 0; i < kParts * kEach; i++) out[i] = world_rank * 10000 + round * 5 + i, in[i] = -1;
    MPI_Startall(2, requests);
    for (int p = kParts - 1; p >= 0; p--) MPI_Pready(p, requests[0]);
    for (int p = 0; p < kParts; p++) {
      for (int here = 0; !here;) MPI_Parrived(requests[1], p, &here);
      for (int i = p * kEach; i < (p + 1) * kEach; i++) CHECK_EQ(in[i], Left() * 10000 + round * 5 + i);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  if (world_size > 1) {
    LargeTags();
    WhileACommunicatorIsMade();
  }
  if (world_size > 2) InOneCommunicatorAfterAnother();
  return End();
}
