/* Long messages from rank 0 to rank 1: of a sender that waits, then one whose sender computes for two seconds when it has begun. Rank 1 prints
 * "copies=C, while it computes: S s": pieces that it copied from the memory of rank 0 of the first kind, and how long it waited for the second. */
#include "tests/mpi/check.h"

enum { kBytes = 5000000, kMessages = 10 };

int main(int argc, char** argv) {
  int provided, copies, count;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  Begin(&argc, &argv);
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  CHECK_EQ(MPI_T_pvar_get_index("host_copies", MPI_T_PVAR_CLASS_COUNTER, &copies), MPI_SUCCESS);
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_handle_alloc(session, copies, NULL, &handle, &count);
  unsigned char* data = malloc(kBytes);
  for (int message = 0; message < kMessages; message++) {
    if (world_rank == 0) {
      for (int i = 0; i < kBytes; i++) data[i] = (unsigned char)(i * 7 + i / 251 + message);
      MPI_Send(data, kBytes, MPI_BYTE, 1, message, MPI_COMM_WORLD);
    } else {
      int wrong = 0;
      MPI_Recv(data, kBytes, MPI_BYTE, 0, message, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int i = 0; i < kBytes; i++) wrong += data[i] != (unsigned char)(i * 7 + i / 251 + message);
      CHECK_EQ(wrong, 0);
    }
  }
  unsigned long long value = 0;
  MPI_T_pvar_read(session, handle, &value);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  if (world_rank == 0) {
    MPI_Request request;
    for (int i = 0; i < kBytes; i++) data[i] = (unsigned char)(i * 3);
    MPI_Isend(data, kBytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    while (MPI_Wtime() - start < 2) {
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(data, kBytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const double waited = MPI_Wtime() - start;
    int wrong = 0;
    for (int i = 0; i < kBytes; i++) wrong += data[i] != (unsigned char)(i * 3);
    CHECK_EQ(wrong, 0);
    printf("copies=%llu, while it computes: %.3f s\n", value, waited);
  }
  free(data);
  MPI_T_pvar_session_free(&session);
  const int status = End();
  MPI_T_finalize();
  return status;
}
