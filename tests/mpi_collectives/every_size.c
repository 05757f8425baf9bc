/* Every collective with blocks from nothing to some 100 kB, so that each algorithm meets eager messages, rendezvous and empty blocks. Exit
 * status 0: all results are right. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, failures;

/* What rank `from` has for rank `to` at position i. */
static int value(int from, int to, int i) { return from * 1000003 + to * 10007 + i * 31; }

static void check(const char *what, int count, int root, const int *got, int expected, int i) {
  if (got[i] != expected && ++failures < 10)
    fprintf(stderr, "%s of %d (root %d): rank %d has %d at %d, not %d\n", what, count, root, rank, got[i], i, expected);
}

static int sum_to(int to, int i) {
  int sum = 0;
  for (int from = 0; from < size; ++from) sum += value(from, to, i);
  return sum;
}

static void rooted(int count, int root, int *send, int *receive) {
  for (int i = 0; i < count; ++i) receive[i] = rank == root ? value(root, 0, i) : -1;
  MPI_Bcast(receive, count, MPI_INT, root, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) check("bcast", count, root, receive, value(root, 0, i), i);

  for (int i = 0; i < count; ++i) send[i] = value(rank, root, i);
  memset(receive, 0xff, (size_t)(count * size) * sizeof(int));
  MPI_Gather(send, count, MPI_INT, receive, count, MPI_INT, root, MPI_COMM_WORLD);
  for (int i = 0; i < count * size && rank == root; ++i) check("gather", count, root, receive, value(i / count, root, i % count), i);

  for (int i = 0; i < count * size; ++i) send[i] = value(root, i / count, i % count);
  MPI_Scatter(send, count, MPI_INT, receive, count, MPI_INT, root, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) check("scatter", count, root, receive, value(root, rank, i), i);

  for (int i = 0; i < count; ++i) send[i] = value(rank, 1, i);
  MPI_Reduce(send, receive, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
  for (int i = 0; i < count && rank == root; ++i) check("reduce", count, root, receive, sum_to(1, i), i);
}

static void symmetric(int count, int *send, int *receive) {
  int counts[64], displacements[64];
  for (int i = 0; i < size; ++i) counts[i] = count, displacements[i] = i * count;

  for (int i = 0; i < count; ++i) send[i] = value(rank, 2, i);
  memset(receive, 0xff, (size_t)(count * size) * sizeof(int));
  MPI_Allgather(send, count, MPI_INT, receive, count, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < count * size; ++i) check("allgather", count, -1, receive, value(i / count, 2, i % count), i);

  memset(receive, 0xff, (size_t)(count * size) * sizeof(int));
  MPI_Allgatherv(send, count, MPI_INT, receive, counts, displacements, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < count * size; ++i) check("allgatherv", count, -1, receive, value(i / count, 2, i % count), i);

  for (int i = 0; i < count * size; ++i) send[i] = value(rank, i / count, i % count);
  memset(receive, 0xff, (size_t)(count * size) * sizeof(int));
  MPI_Alltoall(send, count, MPI_INT, receive, count, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < count * size; ++i) check("alltoall", count, -1, receive, value(i / count, rank, i % count), i);
  memcpy(receive, send, (size_t)(count * size) * sizeof(int));
  MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, receive, counts, displacements, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < count * size; ++i) check("alltoallv", count, -1, receive, value(i / count, rank, i % count), i);

  MPI_Allreduce(send, receive, count * size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count * size; ++i) check("allreduce", count, -1, receive, sum_to(i / count, i % count), i);
  MPI_Reduce_scatter(send, receive, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) check("reduce_scatter", count, -1, receive, sum_to(rank, i), i);
  memcpy(receive, send, (size_t)(count * size) * sizeof(int));
  MPI_Allreduce(MPI_IN_PLACE, receive, count * size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count * size; ++i) check("allreduce in place", count, -1, receive, sum_to(i / count, i % count), i);
}

/* Many under way at once; each gets its own messages. */
static void nonblocking(int *send, int *receive) {
  enum { kMany = 20, kCount = 500 };
  MPI_Request requests[2 * kMany];
  for (int k = 0; k < kMany; ++k) {
    for (int i = 0; i < kCount; ++i) send[k * kCount + i] = value(rank, k, i);
    MPI_Iallreduce(send + k * kCount, receive + k * kCount, kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2 * k]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[2 * k + 1]);
  }
  MPI_Waitall(2 * kMany, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kMany * kCount; ++i) check("iallreduce", kCount, -1, receive, sum_to(i / kCount, i % kCount), i);
}

int main(int argc, char **argv) {
  const int counts[] = {0, 1, 3, 300, 3000, 30000};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const size_t room = (size_t)size * 30000 * sizeof(int);
  int *send = malloc(room), *receive = malloc(room);
  for (size_t k = 0; k < sizeof counts / sizeof counts[0]; ++k) {
    rooted(counts[k], (int)k % size, send, receive);
    symmetric(counts[k], send, receive);
  }
  nonblocking(send, receive);
  free(send);
  free(receive);
  MPI_Finalize();
  return failures != 0;
}
