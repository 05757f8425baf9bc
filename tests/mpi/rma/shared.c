/* Shared windows (MPI 4.0 section 12.2.3): loads and stores into a neighbour's part, contiguous by default; RMA works on them too. */
#include "tests/mpi/check.h"

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm node;
  int rank, size;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &rank);
  MPI_Comm_size(node, &size);
  CHECK_EQ(size, world_size);  /* the harness starts all ranks on one host */
  for (int noncontiguous = 0; noncontiguous < 2; noncontiguous++) {
    MPI_Info info;
    MPI_Info_create(&info);
    if (noncontiguous) MPI_Info_set(info, "alloc_shared_noncontig", "true");
    const int mine = rank == 1 ? 0 : 100 + rank;  /* rank 1 gives nothing */
    int *memory, *flavor, found;
    MPI_Win win;
    MPI_Win_allocate_shared(sizeof(int) * mine, sizeof(int), info, node, &memory, &win);
    MPI_Info_free(&info);
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &found);
    CHECK(found && *flavor == MPI_WIN_FLAVOR_SHARED);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    for (int i = 0; i < mine; i++) memory[i] = rank * 1000 + i;
    MPI_Win_sync(win);
    MPI_Barrier(node);
    MPI_Win_sync(win);
    int* previous_end = NULL;
    for (int r = 0; r < size; r++) {
      MPI_Aint bytes;
      int unit, *theirs;
      MPI_Win_shared_query(win, r, &bytes, &unit, &theirs);
      CHECK_EQ(bytes, r == 1 ? 0 : (100 + r) * (long)sizeof(int));
      CHECK_EQ(unit, sizeof(int));
      if (r == 1) CHECK(theirs == NULL);  /* as in MPICH: there is nothing to point to */
      if (r == 1) continue;
      for (int i = 0; i < 100 + r; i++) CHECK_EQ(theirs[i], r * 1000 + i);
      if (!noncontiguous && previous_end != NULL) CHECK(theirs == previous_end);
      previous_end = theirs + 100 + r;
    }
    /* The lowest rank with memory answers for MPI_PROC_NULL. */
    MPI_Aint bytes;
    int unit, *first;
    MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first);
    CHECK_EQ(bytes, 100 * (long)sizeof(int));
    CHECK_EQ(first[7], 7);
    MPI_Barrier(node);
    /* Stores at the right neighbour's memory are seen by it. */
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int* target;
    MPI_Win_shared_query(win, right, &bytes, &unit, &target);
    if (bytes > 0) target[50] = -rank;
    MPI_Win_sync(win);
    MPI_Barrier(node);
    MPI_Win_sync(win);
    if (mine > 0) CHECK_EQ(memory[50], -left);
    MPI_Barrier(node);
    int one = 1;
    if (right != 1) MPI_Accumulate(&one, 1, MPI_INT, right, 60, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_flush_all(win);
    MPI_Barrier(node);
    MPI_Win_sync(win);
    if (mine > 0) CHECK_EQ(memory[60], rank * 1000 + 61);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
  }
  MPI_Comm_free(&node);
  return End();
}
