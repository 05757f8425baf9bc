/* passive_target [SECONDS]: what one-sided means. Rank 1 lends memory and computes, with no call to MPI, for SECONDS (default 1).
 * Meanwhile rank 0 locks that memory, puts a number into it and unlocks, again and again. MPI_Win_unlock returns when the number is
 * there: with RDMA after microseconds, since the RNIC serves it; with a library that needs the target's help when rank 1 has finished.
 *
 *   mpicc -O2 passive_target.c -o passive_target && mpiexec -n 2 ./passive_target
 */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMost = 1000, kWarmUp = 10, kPlaces = 512 /* MPICH 4.0.2 loses what is put into a window of one */ };

static void LockPutUnlock(long number, MPI_Win win) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
  MPI_Put(&number, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
  MPI_Win_unlock(1, win);
}

static int Ascending(const void* a, const void* b) {
  const double difference = *(const double*)a - *(const double*)b;
  return (difference > 0) - (difference < 0);
}

/* The logistic map, for as long as we are told. */
static double Compute(double seconds) {
  const double end = MPI_Wtime() + seconds;
  double x = 0.3;
  while (MPI_Wtime() < end) {
    for (int i = 0; i < 10000; i++) x = 3.9 * x * (1 - x);
  }
  return x;
}

/* The times in microseconds, at most kMost, of what fits into most of the time that rank 1 computes for. */
static int Measure(double seconds, double times[kMost], MPI_Win win) {
  usleep(50000); /* rank 1 has left the barrier and computes */
  int count = 0;
  for (const double first = MPI_Wtime(); count < kMost && MPI_Wtime() - first < seconds / 2; count++) {
    const double start = MPI_Wtime();
    LockPutUnlock(count + 1, win);
    times[count] = (MPI_Wtime() - start) * 1e6;
  }
  return count;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double seconds = argc > 1 ? atof(argv[1]) : 1;
  int rank, ranks, ok = 1, length;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2 || seconds <= 0) {
    if (rank == 0) fprintf(stderr, "passive_target: 2 ranks, not %d, and a time above 0 s, not %g\n", ranks, seconds);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  long* memory;
  MPI_Win win;
  MPI_Win_allocate(kPlaces * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  if (rank == 0) {
    for (int i = 0; i < kWarmUp; i++) LockPutUnlock(-1, win); /* rank 1 waits in the barrier: connections are made now */
  }
  MPI_Barrier(MPI_COMM_WORLD);

  static double times[kMost];
  int count = 0;
  if (rank == 0) count = Measure(seconds, times, win);
  if (rank == 1 && Compute(seconds) < 0) ok = 0;

  /* The last number that was put is the one that is there. */
  MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    if (*memory != count) {
      fprintf(stderr, "passive_target: %ld is in the window, not %d\n", *memory, count);
      ok = 0;
    }
    MPI_Win_unlock(1, win);
  }
  if (rank == 0) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    qsort(times, count, sizeof *times, Ascending);
    printf("passive_target: %s\n", version);
    printf("passive_target: lock, Put, unlock took %.1f us (median of %d, longest %.1f us) while the target computed for %g s\n",
           times[count / 2], count, times[count - 1], seconds);
  }
  MPI_Win_free(&win);
  MPI_Finalize();
  return ok ? 0 : 1;
}
