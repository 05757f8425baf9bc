/* What operations of one origin cost: "CASE: M messages, R RDMA operations", of kTimes of each. For two ranks that are not on one host. */
#include <stdint.h>

#include "tests/mpi/check.h"

enum { kTimes = 50, kBytes = 65536 };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle messages, operations;
static MPI_Win win;
static char data[kBytes];
static int64_t one = 1, before;

static MPI_T_pvar_handle Handle(const char* name) {
  int index, count;
  MPI_T_pvar_handle handle;
  CHECK_EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
  CHECK_EQ(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count), MPI_SUCCESS);
  return handle;
}

static unsigned long long Value(MPI_T_pvar_handle handle) {
  unsigned long long value = 0;
  MPI_T_pvar_read(session, handle, &value);
  return value;
}

static void Report(const char* name, void (*operate)(void)) {
  operate(); /* the connection, and room for messages */
  const unsigned long long had_messages = Value(messages), had_operations = Value(operations);
  for (int i = 0; i < kTimes; i++) operate();
  printf("%s: %llu messages, %llu RDMA operations\n", name, Value(messages) - had_messages, Value(operations) - had_operations);
}

static void FetchAndOp(void) {
  MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 1, 0, MPI_SUM, win);
  MPI_Win_flush(1, win);
}
static void Accumulate(void) {
  MPI_Accumulate(&one, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, MPI_SUM, win);
  MPI_Win_flush(1, win);
}
static void CompareAndSwap(void) {
  MPI_Compare_and_swap(&one, &one, &before, MPI_INT64_T, 1, 1, win);
  MPI_Win_flush(1, win);
}
static void LockPutUnlock(void) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
  MPI_Put(data, kBytes, MPI_BYTE, 1, 0, kBytes, MPI_BYTE, win);
  MPI_Win_unlock(1, win);
}

int main(int argc, char** argv) {
  int provided, *memory;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  Begin(&argc, &argv);
  MPI_T_pvar_session_create(&session);
  messages = Handle("window_messages");
  operations = Handle("rdma_operations");
  MPI_Win_allocate(kBytes, sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  memset(memory, 0, kBytes);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) {
    MPI_Win_lock_all(0, win);
    Report("fetch_and_op", FetchAndOp);
    Report("accumulate", Accumulate);
    Report("compare_and_swap", CompareAndSwap);
    MPI_Win_unlock_all(win);
    Report("lock_put_unlock", LockPutUnlock);
    fflush(stdout);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&win);
  MPI_T_pvar_session_free(&session);
  const int status = End();
  MPI_T_finalize();
  return status;
}
