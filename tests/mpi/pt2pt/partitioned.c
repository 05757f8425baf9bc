/* Partitioned communication (MPI 4.0 chapter 4). */
#include "tests/mpi/check.h"

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
  return End();
}
