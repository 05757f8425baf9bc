/* A passive target that computes and never calls MPI: what others do to its memory finishes meanwhile. MPICH's operations wait until
 * the target enters MPI, so the time is checked on Weft only; the data on both. */
#include "tests/mpi/check.h"

enum { kCount = 50000, kPatienceSeconds = 20 /* an emulated machine is slow */ };

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  long *memory, *out = malloc(sizeof(long) * kCount), *in = malloc(sizeof(long) * kCount);
  MPI_Win win;
  MPI_Win_allocate(sizeof(long) * (kCount + 2), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  memory[kCount] = memory[kCount + 1] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  /* The queue pairs may be made on first use: not what is measured here. */
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Get(in, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
  MPI_Win_unlock(0, win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) {
    /* No MPI call until every other rank has counted up. */
    long arrived;
    double start = MPI_Wtime(), waited = 0;
    while ((arrived = __atomic_load_n(&memory[kCount + 1], __ATOMIC_ACQUIRE)) < world_size - 1 && waited < kPatienceSeconds) {
      for (double slice = MPI_Wtime(); MPI_Wtime() - slice < 0.01;) {
      }
      waited = MPI_Wtime() - start;
      if (waited > 0.3 && MpichDeviates("only an MPI call lets others through")) break;
    }
    if (!MpichDeviates("needs calls of the target")) CHECK_EQ(arrived, world_size - 1);
  } else {
    long one = 1, was;
    for (int i = 0; i < kCount; i++) out[i] = i * 3;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(out, kCount, MPI_LONG, 0, 0, kCount, MPI_LONG, win);
    MPI_Win_flush(0, win);
    MPI_Get(in, kCount, MPI_LONG, 0, 0, kCount, MPI_LONG, win);
    MPI_Win_unlock(0, win);
    for (int i = 0; i < kCount; i++) CHECK_EQ(in[i], i * 3);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Fetch_and_op(&one, &was, MPI_LONG, 0, kCount, MPI_SUM, win);
    MPI_Accumulate(&one, 1, MPI_LONG, 0, kCount + 1, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    CHECK_EQ(memory[kCount], world_size - 1);
    CHECK_EQ(memory[kCount + 1], world_size - 1);
    MPI_Win_unlock(0, win);
  }
  MPI_Win_free(&win);
  free(out), free(in);
  return End();
}
