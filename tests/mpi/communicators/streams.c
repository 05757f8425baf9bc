/* Messages of communicators that were given a stream of the wire (weft_stream, a hint that others ignore) keep MPI's order, each by
   itself and where receives take any tag. */
#include "tests/mpi/check.h"

enum { kMessages = 200 };

static MPI_Comm WithStream(const char* stream) {
  MPI_Info info, got;
  MPI_Comm made;
  char value[MPI_MAX_INFO_VAL + 1];
  int flag;
  MPI_Info_create(&info);
  MPI_Info_set(info, "weft_stream", stream);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &made);
  MPI_Info_free(&info);
  MPI_Comm_get_info(made, &got);
  MPI_Info_get(got, "weft_stream", MPI_MAX_INFO_VAL, value, &flag);
  if (flag) CHECK_STR(value, stream);
  MPI_Info_free(&got);
  return made;
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm comms[3] = {WithStream("3"), WithStream("65533"), WithStream("0")};
  const int to = Right(), from = Left();
  static int sent[3][kMessages], got[3][kMessages];
  MPI_Request requests[6 * kMessages];
  int count = 0;
  for (int i = 0; i < kMessages; ++i) {
    for (int c = 0; c < 3; ++c) {
      sent[c][i] = c * 1000 + i;
      MPI_Irecv(&got[c][i], 1, MPI_INT, i % 5 == 0 ? MPI_ANY_SOURCE : from, MPI_ANY_TAG, comms[c], &requests[count++]);
    }
  }
  for (int i = 0; i < kMessages; ++i) {
    for (int c = 0; c < 3; ++c) MPI_Isend(&sent[c][i], 1, MPI_INT, to, i % 7, comms[c], &requests[count++]);
  }
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kMessages; ++i) {
    for (int c = 0; c < 3; ++c) CHECK_EQ(got[c][i], c * 1000 + i);
  }
  for (int c = 0; c < 3; ++c) MPI_Comm_free(&comms[c]);
  return End();
}
