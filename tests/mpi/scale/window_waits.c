/* Fences, and epochs of post and start, on a window of allocated memory and on one over memory of the ranks' own. Each rank prints
 * "rank R: memory_waits=W": so many of its waits looked at nothing but memory that it has in common with other ranks. */
#include "tests/mpi/check.h"

enum { kEpochs = 20 };

static void Use(MPI_Win window, int* memory) {
  const int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
  MPI_Win_fence(0, window);
  for (int i = 0; i < kEpochs; i++) {
    const int word = 100 * i + world_rank;
    MPI_Put(&word, 1, MPI_INT, right, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK_EQ(*memory, 100 * i + left);
    MPI_Win_fence(0, window);
  }
  MPI_Group all, origin, target;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &left, &origin);
  MPI_Group_incl(all, 1, &right, &target);
  for (int i = 0; i < kEpochs; i++) {
    const int word = 1000 * i + world_rank;
    MPI_Win_post(origin, 0, window);
    MPI_Win_start(target, 0, window);
    MPI_Put(&word, 1, MPI_INT, right, 0, 1, MPI_INT, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    CHECK_EQ(*memory, 1000 * i + left);
  }
  MPI_Group_free(&all);
  MPI_Group_free(&origin);
  MPI_Group_free(&target);
}

int main(int argc, char** argv) {
  int provided, waits, count, own = 0, *allocated;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  Begin(&argc, &argv);
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  CHECK_EQ(MPI_T_pvar_get_index("memory_waits", MPI_T_PVAR_CLASS_COUNTER, &waits), MPI_SUCCESS);
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_handle_alloc(session, waits, NULL, &handle, &count);
  MPI_Win window;
  MPI_Win_create(&own, sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  Use(window, &own);
  MPI_Win_free(&window);
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &window);
  Use(window, allocated);
  MPI_Win_free(&window);
  unsigned long long value = 0;
  MPI_T_pvar_read(session, handle, &value);
  printf("rank %d: memory_waits=%llu\n", world_rank, value);
  fflush(stdout);
  MPI_T_pvar_session_free(&session);
  const int status = End();
  MPI_T_finalize();
  return status;
}
