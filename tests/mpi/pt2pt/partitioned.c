/* Partitioned communication (MPI 4.0 chapter 4). */
#define _DEFAULT_SOURCE
#include "tests/mpi/check.h"

#include <unistd.h>

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

/* A partition is at the receiver before the last one is ready. */
static void APartitionLeavesWhenItIsReady(int bytes) {
  enum { kParts = 6 };
  char* const data = malloc((size_t)bytes * kParts);
  MPI_Request request;
  if (world_rank == 0) {
    MPI_Psend_init(data, kParts, bytes, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < 2; round++) {
      MPI_Start(&request);
      for (int p = kParts - 1; p >= 0; p--) {
        FillPattern(data + (size_t)p * bytes, bytes, round, p);
        CHECK_OK(MPI_Pready(p, request));
        if (p > 0) MPI_Recv(NULL, 0, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* it has it */
      }
      CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
  } else {
    MPI_Precv_init(data, kParts, bytes, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < 2; round++) {
      MPI_Status status;
      int here;
      MPI_Start(&request);
      for (int p = kParts - 1; p >= 0; p--) {
        for (here = 0; !here;) CHECK_OK(MPI_Parrived(request, p, &here));
        CHECK_PATTERN(data + (size_t)p * bytes, (size_t)bytes, round, p);
        if (p == 0) break;
        MPI_Parrived(request, p - 1, &here);
        CHECK_EQ(here, 0);
        MPI_Test(&request, &here, MPI_STATUS_IGNORE);
        CHECK_EQ(here, 0);
        MPI_Send(NULL, 0, MPI_INT, 0, 3, MPI_COMM_WORLD);
      }
      CHECK_OK(MPI_Wait(&request, &status));
      CHECK_STATUS(status, 0, 2, MPI_CHAR, bytes * kParts);
      MPI_Parrived(request, 0, &here); /* of a request that is not active */
      CHECK_EQ(here, 1);
    }
  }
  MPI_Request_free(&request);
  free(data);
}

/* Partitions that are ready one right after the other may leave together; where the next one takes long, those before it are at the receiver long before
 * it, though the sender calls nothing. */
static void ABurstThatStopsLeavesAllTheSame(void) {
  enum { kParts = 6, kSeconds = 1 };
  int data[kParts];
  MPI_Request request;
  if (world_rank == 0) {
    MPI_Psend_init(data, kParts, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  } else {
    MPI_Precv_init(data, kParts, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  }
  for (int round = 0; round < 4; round++) {
    MPI_Start(&request);
    if (world_rank == 0) {
      for (int p = 0; p < kParts; p++) {
        if (p == kParts - 1 && round == 2) sleep(kSeconds);
        data[p] = 10 * round + p;
        CHECK_OK(MPI_Pready(p, request));
      }
    } else if (round == 2) {
      for (int p = 0; p < kParts - 1; p++) {
        for (int here = 0; !here;) MPI_Parrived(request, p, &here);
        CHECK_EQ(data[p], 10 * round + p);
      }
      const double before = MPI_Wtime();
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(MPI_Wtime() - before > kSeconds / 4.0);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int p = 0; p < kParts; p++) CHECK_EQ(data[p], 10 * round + p);
    if (world_rank == 0) MPI_Recv(NULL, 0, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (world_rank == 1) MPI_Send(NULL, 0, MPI_INT, 0, 9, MPI_COMM_WORLD);
  }
  MPI_Request_free(&request);
}

/* Both ends divide the same data in different ways. `type` has `ints` ints, at the receiver only. */
static void Divided(int sent, int received, int total, MPI_Datatype type, int ints, int extent) {
  int* const data = malloc(sizeof(int) * (size_t)(total * extent + 1));
  MPI_Request request;
  for (int i = 0; i < total * extent; i++) data[i] = world_rank == 0 ? 7 * i + total : -1;
  if (world_rank == 0) {
    MPI_Psend_init(data, sent, total / sent, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  } else {
    MPI_Precv_init(data, received, total / ints / received, type, 0, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  }
  for (int round = 0; round < 2; round++) {
    MPI_Start(&request);
    if (world_rank == 0) {
      for (int p = 0; p < sent; p++) MPI_Pready((p * 7 + round) % sent, request); /* 7 divides no `sent` */
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      continue;
    }
    for (int p = received - 1; p >= 0; p--) {
      const int each = total / received;
      for (int here = 0; !here;) MPI_Parrived(request, p, &here);
      for (int i = p * each; i < (p + 1) * each; i++) CHECK_EQ(data[i / ints * extent + i % ints], 7 * i + total);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < total / ints * extent; i++) {
      if (i % extent >= ints) CHECK_EQ(data[i], -1); /* gaps */
      data[i] = -1;
    }
  }
  MPI_Request_free(&request);
  free(data);
}

static void DividedDifferently(void) {
  const int ways[][3] = {{1, 1, 12}, {8, 4, 64}, {4, 8, 64}, {3, 5, 30}, {5, 3, 30}, {1, 16, 48}, {16, 1, 48}, {12, 6, 12}, {2, 3, 600000}};
  MPI_Datatype packed, three;
  MPI_Aint displacements[] = {0};
  int lengths[] = {3};
  MPI_Type_create_hindexed(1, lengths, displacements, MPI_INT, &packed);
  MPI_Type_create_resized(packed, 0, 5 * (MPI_Aint)sizeof(int), &three);
  MPI_Type_commit(&three);
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    const int* way = ways[i];
    Divided(way[0], way[1], way[2], MPI_INT, 1, 1);
    /* Also where a partition of the sender begins inside an element of the receiver. */
    if (way[2] / way[1] % 3 == 0) Divided(way[0], way[1], way[2], three, 3, 5);
  }
  MPI_Type_free(&packed);
  MPI_Type_free(&three);
}

static void Many(int parts, int rounds) {
  int* const out = malloc(sizeof(int) * (size_t)parts);
  int* const in = malloc(sizeof(int) * (size_t)parts);
  MPI_Request requests[2];
  MPI_Psend_init(out, parts, 1, MPI_INT, Right(), 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(in, parts, 1, MPI_INT, Left(), 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < parts; i++) out[i] = world_rank + round * parts + i, in[i] = -1;
    MPI_Startall(2, requests);
    if (round == 0) {
      for (int p = 0; p < parts; p++) MPI_Pready(p, requests[0]);
    } else if (round == 1) {
      MPI_Pready_range(0, parts / 2, requests[0]);
      MPI_Pready_range(parts / 2 + 1, parts - 1, requests[0]);
    } else {
      int* const list = malloc(sizeof(int) * (size_t)parts);
      for (int i = 0; i < parts; i++) list[i] = parts - 1 - i;
      MPI_Pready_list(parts, list, requests[0]);
      free(list);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    int wrong = 0;
    for (int i = 0; i < parts; i++) wrong += in[i] != Left() + round * parts + i;
    CHECK_EQ(wrong, 0);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  free(out);
  free(in);
}

static void ToNobody(void) {
  int data[4] = {1, 2, 3, 4}, here = 0;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Psend_init(data, 2, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(data, 2, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  MPI_Startall(2, requests);
  MPI_Parrived(requests[1], 1, &here);
  CHECK_EQ(here, 1);
  MPI_Pready_range(0, 1, requests[0]);
  MPI_Waitall(2, requests, statuses);
  CHECK_EQ(statuses[1].MPI_SOURCE, MPI_PROC_NULL);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static void Errors(void) {
  int data[8] = {0}, in[8], here, list[] = {0, 2, 1, 9}, twice[] = {2, 2};
  MPI_Request send, receive, other;
  CHECK_CLASS(MPI_Psend_init(data, -1, 2, MPI_INT, Right(), 6, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Psend_init(data, 4, 2, MPI_INT, world_size, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Precv_init(data, 4, 2, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Psend_init(data, 4, -2, MPI_INT, Right(), 6, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Psend_init(data, 1 << 30, (MPI_Count)1 << 60, MPI_INT, Right(), 6, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Psend_init(data, 2000000000, 0, MPI_INT, Right(), 6, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_ARG);
  CHECK_OK(MPI_Psend_init(data, 4, 2, MPI_INT, Right(), 6, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  CHECK_OK(MPI_Precv_init(in, 4, 2, MPI_INT, Left(), 6, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
  CHECK_OK(MPI_Send_init(data, 1, MPI_INT, Right(), 6, MPI_COMM_WORLD, &other));
  CHECK_CLASS(MPI_Pready(0, send), MPI_ERR_REQUEST); /* not started */
  CHECK_CLASS(MPI_Pready(0, other), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Pready(0, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
  MPI_Start(&receive);
  MPI_Start(&send);
  CHECK_CLASS(MPI_Start(&send), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Pready(0, receive), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Parrived(send, 0, &here), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Parrived(receive, 4, &here), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Parrived(receive, -1, &here), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready(4, send), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready(-1, send), MPI_ERR_ARG);
  CHECK_OK(MPI_Pready(3, send));
  CHECK_CLASS(MPI_Pready(3, send), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready_range(2, 3, send), MPI_ERR_ARG); /* and 2 is not ready now, */
  CHECK_CLASS(MPI_Pready_range(2, 1, send), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready_list(4, list, send), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready_list(2, twice, send), MPI_ERR_ARG);
  CHECK_OK(MPI_Pready_list(3, list, send)); /* ... nor any of these */
  CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  CHECK_OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
  CHECK_CLASS(MPI_Pready(3, send), MPI_ERR_REQUEST);
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
  MPI_Request_free(&other);
}

/* More data than the receive has room for is an error there, each time; less is none. */
static void WrongSizes(void) {
  enum { kRoom = 6 };
  const int sent[] = {8, 4};
  for (int i = 0; i < 2; i++) {
    int data[16], here;
    MPI_Request request;
    MPI_Status status;
    for (int k = 0; k < 16; k++) data[k] = world_rank == 0 ? k : -1;
    if (world_rank == 0) {
      MPI_Psend_init(data, sent[i], 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    } else {
      MPI_Precv_init(data, kRoom / 2, 2, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    }
    for (int round = 0; round < 2; round++) {
      MPI_Start(&request);
      if (world_rank == 0) {
        MPI_Pready_range(0, sent[i] - 1, request);
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        continue;
      }
      CHECK_CLASS(MPI_Wait(&request, &status), sent[i] > kRoom ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
      if (sent[i] > kRoom) {
        for (int k = 0; k < 16; k++) CHECK_EQ(data[k], -1);
        continue;
      }
      CHECK_STATUS(status, 0, 7, MPI_INT, sent[i]);
      for (int k = 0; k < 16; k++) CHECK_EQ(data[k], k < sent[i] ? k : -1);
      MPI_Parrived(request, kRoom / 2 - 1, &here);
      CHECK_EQ(here, 1);
    }
    MPI_Request_free(&request);
  }
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  enum { kParts = 8, kEach = 500 };
  static int out[kParts * kEach], in[kParts * kEach];
  MPI_Request requests[2];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int mpich = MpichDeviates("a message leaves as a whole, MPI_PROC_NULL is none, arguments are not looked at");
  CHECK_OK(MPI_Psend_init(out, kParts, kEach, MPI_INT, Right(), 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
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
  Many(1000, 3);
  Many(65536, 1);
  if (!mpich) {
    ToNobody();
    Errors();
  }
  if (world_size > 1) {
    LargeTags();
    WhileACommunicatorIsMade();
    if (world_rank < 2) {
      DividedDifferently();
      if (!mpich) {
        APartitionLeavesWhenItIsReady(8);
        APartitionLeavesWhenItIsReady(300000);
        ABurstThatStopsLeavesAllTheSame();
        WrongSizes();
      }
    }
  }
  if (world_size > 2) InOneCommunicatorAfterAnother();
  return End();
}
