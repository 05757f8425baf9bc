/* mixed [ROUNDS]: point-to-point and one-sided communication under way at once, in both directions. The synthetic test of M. Tsai's
 * thesis "Hybrid Design of MPI over SCTP" (UBC 2007, section 4.2, figure 4.3): a series of MPI_Isend of many sizes and of MPI_Put and
 * MPI_Get, with MPI_Waitall, MPI_Waitany and MPI_Win_fence placed so that both kinds overlap. Ranks work in pairs, 0 with 1, 2 with 3.
 * Every byte is checked.
 *
 * Separate devices help: a large message on a socket does not hold up an RDMA Write, and the other way round.
 *
 *   mpicc -O2 mixed.c -o mixed && mpiexec -n 2 ./mixed
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSizes = 6, kLargest = 262144 };
static const int kSize[kSizes] = {64, 1024, 4096, 16384, 65536, kLargest};

static unsigned char Byte(int rank, int round, int which, int i) { return (unsigned char)(rank * 83 + round * 31 + which * 17 + i * 7 + (i >> 8)); }
static void Fill(unsigned char* p, int bytes, int rank, int round, int which) {
  for (int i = 0; i < bytes; i++) p[i] = Byte(rank, round, which, i);
}
static long Wrong(const unsigned char* p, int bytes, int rank, int round, int which) {
  long wrong = 0;
  for (int i = 0; i < bytes; i++) wrong += p[i] != Byte(rank, round, which, i);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rounds = argc > 1 ? atoi(argv[1]) : 20;
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks % 2 != 0) {
    if (rank == 0) fprintf(stderr, "mixed: an even number of ranks, not %d\n", ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int partner = rank ^ 1;

  /* The window: what the partner puts (first half), and what it gets (second half). */
  unsigned char *window, *put = malloc(kLargest), *got = malloc(kLargest), *sent[kSizes], *received[kSizes];
  MPI_Win win;
  MPI_Win_allocate(2 * kLargest, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
  for (int k = 0; k < kSizes; k++) {
    sent[k] = malloc(kSize[k]);
    received[k] = malloc(kSize[k]);
  }
  long wrong = 0;
  double seconds = 0;
  for (int round = 0; round < rounds; round++) {
    Fill(window + kLargest, kLargest, rank, round, 100);
    Fill(put, kLargest, rank, round, 101);
    for (int k = 0; k < kSizes; k++) Fill(sent[k], kSize[k], rank, round, k);
    MPI_Win_fence(0, win);
    const double start = MPI_Wtime();

    /* 1. Receives and sends of all sizes are started, then one-sided operations of all sizes beside them. */
    MPI_Request requests[2 * kSizes];
    for (int k = 0; k < kSizes; k++) MPI_Irecv(received[k], kSize[k], MPI_BYTE, partner, k, MPI_COMM_WORLD, &requests[k]);
    for (int k = kSizes - 1; k >= 0; k--) MPI_Isend(sent[k], kSize[k], MPI_BYTE, partner, k, MPI_COMM_WORLD, &requests[kSizes + k]);
    for (int offset = 0, k = 0; k < kSizes; offset += kSize[k++]) {
      const int bytes = offset + kSize[k] > kLargest ? kLargest - offset : kSize[k];
      MPI_Put(put + offset, bytes, MPI_BYTE, partner, offset, bytes, MPI_BYTE, win);
      MPI_Get(got + offset, bytes, MPI_BYTE, partner, kLargest + offset, bytes, MPI_BYTE, win);
    }
    /* 2. Half of the messages one by one as they come, the fence in the middle of them, then the rest. */
    for (int i = 0; i < kSizes; i++) {
      int index;
      MPI_Waitany(2 * kSizes, requests, &index, MPI_STATUS_IGNORE);
    }
    MPI_Win_fence(0, win);
    MPI_Waitall(2 * kSizes, requests, MPI_STATUSES_IGNORE);
    seconds += MPI_Wtime() - start;

    for (int k = 0; k < kSizes; k++) wrong += Wrong(received[k], kSize[k], partner, round, k);
    wrong += Wrong(window, kLargest, partner, round, 101) + Wrong(got, kLargest, partner, round, 100);
  }
  long all_wrong = 0;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("mixed: %d rounds of %.0f us on %d ranks; %ld bytes are wrong\n", rounds, seconds / rounds * 1e6, ranks, all_wrong);
  MPI_Win_free(&win);
  for (int k = 0; k < kSizes; k++) {
    free(sent[k]);
    free(received[k]);
  }
  free(put);
  free(got);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
