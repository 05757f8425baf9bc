/* bucket_sort [KEYS PER RANK]: random keys are sorted over all ranks, as the IS benchmark does. Keys go to the rank that owns their
 * bucket: the counts by MPI_Alltoall, the keys by MPI_Alltoallv; each rank sorts what it got. Checked against a serial sort at rank 0.
 *
 *   mpicc -O2 bucket_sort.c -o bucket_sort && mpiexec -n 4 ./bucket_sort 100000
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLargestKey = 1 << 20 };

/* Key `i` of rank `rank`; small keys are more frequent, so that buckets differ in size. */
static int Key(int rank, int i) {
  unsigned long x = (unsigned long)rank * 1000003 + i + 1;
  for (int round = 0; round < 3; round++) x = (x ^ (x >> 17)) * 0x9e3779b97f4a7c15ul;
  const double u = (double)(x >> 11) / (double)(1ul << 53);
  return (int)(u * u * kLargestKey);
}

static int Ascending(const void* a, const void* b) { return (*(const int*)a > *(const int*)b) - (*(const int*)a < *(const int*)b); }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int mine = argc > 1 ? atoi(argv[1]) : 100000;

  /* 1. Our keys, ordered by the rank that they go to. */
  int *out_counts = calloc(ranks, sizeof(int)), *out_places = calloc(ranks, sizeof(int)), *in_counts = calloc(ranks, sizeof(int)),
      *in_places = calloc(ranks, sizeof(int)), *next = calloc(ranks, sizeof(int)), *out = malloc(sizeof(int) * mine);
  const double start = MPI_Wtime();
#define OWNER(key) ((int)((long)(key)*ranks / kLargestKey))
  for (int i = 0; i < mine; i++) out_counts[OWNER(Key(rank, i))]++;
  for (int r = 1; r < ranks; r++) next[r] = out_places[r] = out_places[r - 1] + out_counts[r - 1];
  for (int i = 0; i < mine; i++) out[next[OWNER(Key(rank, i))]++] = Key(rank, i);

  /* 2. How many come from whom, then the keys. */
  MPI_Alltoall(out_counts, 1, MPI_INT, in_counts, 1, MPI_INT, MPI_COMM_WORLD);
  int total = in_counts[0];
  for (int r = 1; r < ranks; r++) {
    in_places[r] = total;
    total += in_counts[r];
  }
  int* keys = malloc(sizeof(int) * (total + 1));
  MPI_Alltoallv(out, out_counts, out_places, MPI_INT, keys, in_counts, in_places, MPI_INT, MPI_COMM_WORLD);
  qsort(keys, total, sizeof(int), Ascending);
  const double seconds = MPI_Wtime() - start;

  /* 3. Gathered in the order of ranks, the keys are sorted, and are those of a serial sort. */
  int* all = NULL;
  MPI_Gather(&total, 1, MPI_INT, in_counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    all = malloc(sizeof(int) * mine * ranks);
    for (int r = 1, sum = in_counts[0]; r < ranks; sum += in_counts[r++]) in_places[r] = sum;
    in_places[0] = 0;
  }
  MPI_Gatherv(keys, total, MPI_INT, all, in_counts, in_places, MPI_INT, 0, MPI_COMM_WORLD);
  int ok = 1;
  if (rank == 0) {
    int* serial = malloc(sizeof(int) * mine * ranks);
    for (int r = 0; r < ranks; r++) {
      for (int i = 0; i < mine; i++) serial[(size_t)r * mine + i] = Key(r, i);
    }
    qsort(serial, (size_t)mine * ranks, sizeof(int), Ascending);
    ok = memcmp(serial, all, sizeof(int) * mine * ranks) == 0;
    printf("bucket_sort: %d keys on %d ranks in %.3f ms; %s\n", mine * ranks, ranks, seconds * 1e3,
           ok ? "as a serial sort has them" : "NOT as a serial sort has them");
    free(serial);
    free(all);
  }
  free(out_counts), free(out_places), free(in_counts), free(in_places), free(next), free(out), free(keys);
  MPI_Finalize();
  return ok ? 0 : 1;
}
