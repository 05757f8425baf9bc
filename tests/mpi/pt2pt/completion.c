/* Completion of requests (MPI 4.0 section 3.7.5): wait and test for one, any, some and all, null requests, empty statuses. */
#include "tests/mpi/check.h"

static void CheckEmpty(const MPI_Status* status) {
  int cancelled = -1;
  CHECK_STATUS(*status, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_INT, 0);
  MPI_Test_cancelled(status, &cancelled);
  CHECK_EQ(cancelled, 0);
}

static void NullRequests(void) {
  MPI_Request none[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status status, statuses[3];
  int flag = 0, index = 5, count = 5, indices[3];
  MPI_Wait(&none[0], &status);
  CheckEmpty(&status);
  MPI_Test(&none[0], &flag, &status);
  CHECK(flag);
  CheckEmpty(&status);
  MPI_Waitany(3, none, &index, &status);
  CHECK_EQ(index, MPI_UNDEFINED);
  CheckEmpty(&status);
  MPI_Testany(3, none, &index, &flag, &status);
  CHECK_EQ(index, MPI_UNDEFINED);
  CHECK(flag);
  CheckEmpty(&status);
  MPI_Waitsome(3, none, &count, indices, statuses);
  CHECK_EQ(count, MPI_UNDEFINED);
  MPI_Testsome(3, none, &count, indices, statuses);
  CHECK_EQ(count, MPI_UNDEFINED);
  MPI_Waitall(3, none, statuses);
  for (int i = 0; i < 3; i++) CheckEmpty(&statuses[i]);
  flag = 0;
  MPI_Testall(3, none, &flag, statuses);
  CHECK(flag);
  MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
}

/* Nothing may have MPI_DATATYPE_NULL for its type. Statuses of several requests say that each is in order, whatever stood there before. */
static void NothingOfNoType(void) {
  MPI_Request requests[2];
  MPI_Status statuses[2];
  int flag = 0;
  for (int round = 0; round < 2; round++) {
    statuses[0].MPI_ERROR = statuses[1].MPI_ERROR = 77;
    MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, Left(), 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(NULL, 0, MPI_DATATYPE_NULL, Right(), 8, MPI_COMM_WORLD, &requests[1]);
    if (round == 0) {
      MPI_Waitall(2, requests, statuses);
    } else {
      while (!flag) MPI_Testall(2, requests, &flag, statuses);
      if (MpichDeviates("MPI_Testall leaves MPI_ERROR alone, as the standard has it")) continue;
    }
    CHECK_EQ(statuses[0].MPI_ERROR, MPI_SUCCESS);
    CHECK_EQ(statuses[1].MPI_ERROR, MPI_SUCCESS);
  }
}

enum { kRequests = 12 };

/* Messages to self arrive one by one in a scrambled order; `collect` says by which function they are found. */
static void OneByOne(char collect) {
  int in[kRequests], seen[kRequests] = {0}, found = 0;
  MPI_Request requests[kRequests];
  for (int i = 0; i < kRequests; i++) MPI_Irecv(&in[i], 1, MPI_INT, world_rank, i, MPI_COMM_WORLD, &requests[i]);
  for (int i = 0; i < kRequests; i++) {
    int tag = (i * 5 + 3) % kRequests, value = 100 + tag, flag = 0, index = -1;
    MPI_Status status;
    MPI_Testany(kRequests, requests, &index, &flag, &status);
    CHECK(!flag || found == kRequests);
    if (!flag) CHECK_EQ(index, MPI_UNDEFINED);
    MPI_Testall(kRequests, requests, &flag, MPI_STATUSES_IGNORE);
    CHECK(!flag);
    MPI_Send(&value, 1, MPI_INT, world_rank, tag, MPI_COMM_WORLD);
    int indices[kRequests], count = 0;
    MPI_Status statuses[kRequests];
    if (collect == 'a') {
      MPI_Waitany(kRequests, requests, &indices[0], &statuses[0]);
      count = 1;
    } else if (collect == 's') {
      MPI_Waitsome(kRequests, requests, &count, indices, statuses);
    } else {
      while (count == 0) MPI_Testsome(kRequests, requests, &count, indices, statuses);
    }
    CHECK_EQ(count, 1);
    CHECK_EQ(indices[0], tag);
    CHECK_STATUS(statuses[0], world_rank, tag, MPI_INT, 1);
    CHECK_EQ(in[tag], value);
    CHECK_EQ(requests[tag], MPI_REQUEST_NULL);
    CHECK_EQ(seen[tag]++, 0);
    found += count;
  }
  CHECK_EQ(found, kRequests);
}

/* MPI_Request_get_status looks and leaves the request alone. */
static void GetStatus(void) {
  int in = 0, out = 3, flag = 1;
  MPI_Request request;
  MPI_Status status;
  MPI_Irecv(&in, 1, MPI_INT, world_rank, 1, MPI_COMM_WORLD, &request);
  MPI_Request_get_status(request, &flag, &status);
  CHECK_EQ(flag, 0);
  MPI_Send(&out, 1, MPI_INT, world_rank, 1, MPI_COMM_WORLD);
  for (flag = 0; !flag;) MPI_Request_get_status(request, &flag, &status);
  CHECK_STATUS(status, world_rank, 1, MPI_INT, 1);
  CHECK(request != MPI_REQUEST_NULL);
  MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  CHECK(flag);
  MPI_Wait(&request, &status);
  CHECK_STATUS(status, world_rank, 1, MPI_INT, 1);
  MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &status);
  CHECK(flag);
  CheckEmpty(&status);
}

/* A freed request finishes on its own. */
static void FreedSend(void) {
  int in = 0;
  static int out = 9;
  MPI_Request send;
  MPI_Isend(&out, 1, MPI_INT, world_rank, 2, MPI_COMM_WORLD, &send);
  MPI_Request_free(&send);
  CHECK_EQ(send, MPI_REQUEST_NULL);
  MPI_Recv(&in, 1, MPI_INT, world_rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(in, 9);
}

/* Two thousand requests under way to every rank at once. */
static void ManyAtOnce(void) {
  enum { kEach = 500 };
  const int total = 2 * kEach * world_size;
  MPI_Request* requests = malloc(total * sizeof *requests);
  int* in = malloc(kEach * world_size * sizeof *in);
  int* out = malloc(kEach * sizeof *out);
  int n = 0;
  for (int i = 0; i < kEach; i++) out[i] = world_rank * kEach + i;
  for (int i = 0; i < kEach; i++) {
    for (int peer = 0; peer < world_size; peer++) {
      MPI_Isend(&out[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &requests[n++]);
      MPI_Irecv(&in[peer * kEach + i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &requests[n++]);
    }
  }
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kEach * world_size; i++) CHECK_EQ(in[i], i);
  free(out);
  free(in);
  free(requests);
}

/* Short sends, most of which are over when they have begun: ended in every way, and sent again behind each. */
static void SendsThatAreOverAtOnce(void) {
  enum { kSends = 12 };
  MPI_Request requests[kSends], receives[kSends + 1];
  MPI_Status status, statuses[kSends];
  int out[kSends], in[kSends + 1], index, flag, count, indices[kSends];
  for (int i = 0; i <= kSends; i++) MPI_Irecv(&in[i], 1, MPI_INT, Left(), 3, MPI_COMM_WORLD, &receives[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kSends; i++) {
    out[i] = 100 * world_rank + i;
    MPI_Isend(&out[i], 1, MPI_INT, Right(), 3, MPI_COMM_WORLD, &requests[i]);
    CHECK(requests[i] != MPI_REQUEST_NULL);
  }
  CHECK_OK(MPI_Wait(&requests[0], &status));
  for (flag = 0; !flag;) MPI_Test(&requests[1], &flag, &status);
  MPI_Test_cancelled(&status, &flag);
  CHECK(!flag);
  for (flag = 0; !flag;) MPI_Request_get_status(requests[2], &flag, &status);
  CHECK(requests[2] != MPI_REQUEST_NULL);
  MPI_Request_free(&requests[2]);
  CHECK_EQ(requests[2], MPI_REQUEST_NULL);
  MPI_Waitany(4, requests, &index, &status);
  CHECK_EQ(index, 3);
  for (count = 0; count == 0;) MPI_Testsome(2, requests + 4, &count, indices, statuses);
  for (int left = 2 - count; left > 0; left -= count) MPI_Waitsome(2, requests + 4, &count, indices, statuses);
  MPI_Isend(&out[0], 1, MPI_INT, Right(), 3, MPI_COMM_WORLD, &requests[0]);
  for (flag = 0; !flag;) MPI_Testall(2, requests + 6, &flag, statuses);
  MPI_Waitall(kSends, requests, statuses);
  for (int i = 0; i < kSends; i++) CHECK_EQ(requests[i], MPI_REQUEST_NULL);
  /* One that was over is not under way again, whatever else is. */
  CHECK_OK(MPI_Wait(&requests[0], &status));
  MPI_Waitall(kSends + 1, receives, MPI_STATUSES_IGNORE);
  for (int i = 0; i <= kSends; i++) CHECK_EQ(in[i], 100 * Left() + i % kSends);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  NullRequests();
  NothingOfNoType();
  OneByOne('a');
  OneByOne('s');
  OneByOne('t');
  GetStatus();
  FreedSend();
  ManyAtOnce();
  SendsThatAreOverAtOnce();
  return End();
}
