/* messages [--quick]: half of a round trip, and the rate of eight long messages one way, between the first and the last rank; others wait. A line per
 * figure: name, bytes, value (microseconds, or bytes per second). Only what MPI-1 has: LAM/MPI compiles it too. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLongest = 1 << 20, kWindow = 8, kBatches = 9 };

static int g_rank, g_last, g_quick;
static char* g_bytes; /* kWindow * kLongest */

static void RoundTrip(int size) {
  MPI_Status status;
  if (g_rank == 0) MPI_Send(g_bytes, size, MPI_BYTE, g_last, 1, MPI_COMM_WORLD);
  MPI_Recv(g_bytes, size, MPI_BYTE, g_last - g_rank, 1, MPI_COMM_WORLD, &status);
  if (g_rank != 0) MPI_Send(g_bytes, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
}

static void OneWay(int size) {
  MPI_Request requests[kWindow];
  MPI_Status statuses[kWindow];
  int i;
  for (i = 0; i < kWindow; i++) {
    if (g_rank == 0) {
      MPI_Isend(g_bytes + (size_t)i * size, size, MPI_BYTE, g_last, 2, MPI_COMM_WORLD, &requests[i]);
    } else {
      MPI_Irecv(g_bytes + (size_t)i * size, size, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[i]);
    }
  }
  MPI_Waitall(kWindow, requests, statuses);
  RoundTrip(0);
}

static int Ascending(const void* a, const void* b) { return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b); }

/* The median of the microseconds of a call, of 9 batches (3 when quick) of about 20 ms (1 when quick). */
static double Measure(void (*call)(int), int size, double guess_us) {
  double batches[kBatches];
  const int count = g_quick ? 3 : kBatches, calls = 5 + (int)((g_quick ? 1000 : 20000) / guess_us);
  int batch, i;
  for (batch = -1; batch < count; batch++) { /* one to warm up */
    double start;
    RoundTrip(0);
    start = MPI_Wtime();
    for (i = 0; i < calls; i++) call(size);
    if (batch >= 0) batches[batch] = (MPI_Wtime() - start) * 1e6 / calls;
  }
  qsort(batches, count, sizeof *batches, Ascending);
  return batches[count / 2];
}

int main(int argc, char** argv) {
  static const int kSizes[] = {8, 1024, 4096, 65536, kLongest};
  int size, i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  g_quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
  g_last = size - 1;
  g_bytes = calloc(kWindow, kLongest);
  if (size < 2 || g_bytes == NULL) {
    fprintf(stderr, "messages: needs 2 ranks or more, and memory\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (g_rank != 0 && g_rank != g_last) {
    MPI_Finalize();
    return 0;
  }
  for (i = 0; i < (int)(sizeof kSizes / sizeof *kSizes); i++) {
    const double us = Measure(RoundTrip, kSizes[i], 30 + kSizes[i] / 300.0) / 2;
    if (g_rank == 0) printf("ping_pong %d %.3f\n", kSizes[i], us);
  }
  {
    const double us = Measure(OneWay, kLongest, 8000);
    if (g_rank == 0) printf("bandwidth %d %.0f\n", kLongest, 1e6 * kWindow * kLongest / us);
  }
  free(g_bytes);
  MPI_Finalize();
  return 0;
}
