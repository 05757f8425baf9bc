/* Nonblocking collectives (MPI 4.0 section 6.12): several at once on one communicator, mixed with messages and blocking ones, completed
 * in another order than started. */
#include "tests/mpi/check.h"

enum { kCount = 2000, kRanks = 64 };

static int Value(int from, int to, int i) { return from * 1000003 + to * 10007 + i; }

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  const int n = world_size;
  MPI_Request requests[16];
  static int bcast[kCount], mine[kCount], sum[kCount], scan[kCount], exscan[kCount];
  int *gathered = malloc(sizeof(int) * kCount * n), *all = malloc(sizeof(int) * kCount * n), *out = malloc(sizeof(int) * kCount * n),
      *in = malloc(sizeof(int) * kCount * n), *scattered = malloc(sizeof(int) * kCount), *block = malloc(sizeof(int) * kCount);
  for (int round = 0; round < 5; round++) {
    for (int i = 0; i < kCount; i++) mine[i] = Value(world_rank, round, i), bcast[i] = world_rank == round % n ? i + round : -1;
    for (int i = 0; i < kCount * n; i++) out[i] = Value(world_rank, i / kCount, i % kCount);
    int k = 0, root = (round + 1) % n;
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[k++]);
    MPI_Ibcast(bcast, kCount, MPI_INT, round % n, MPI_COMM_WORLD, &requests[k++]);
    MPI_Iallreduce(mine, sum, kCount, MPI_INT, MPI_BXOR, MPI_COMM_WORLD, &requests[k++]);
    MPI_Iscan(mine, scan, kCount, MPI_INT, MPI_BXOR, MPI_COMM_WORLD, &requests[k++]);
    MPI_Iexscan(mine, exscan, kCount, MPI_INT, MPI_BXOR, MPI_COMM_WORLD, &requests[k++]);
    MPI_Igather(mine, kCount, MPI_INT, gathered, kCount, MPI_INT, root, MPI_COMM_WORLD, &requests[k++]);
    MPI_Iallgather(mine, kCount, MPI_INT, all, kCount, MPI_INT, MPI_COMM_WORLD, &requests[k++]);
    MPI_Ialltoall(out, kCount, MPI_INT, in, kCount, MPI_INT, MPI_COMM_WORLD, &requests[k++]);
    MPI_Iscatter(out, kCount, MPI_INT, scattered, kCount, MPI_INT, root, MPI_COMM_WORLD, &requests[k++]);
    MPI_Ireduce_scatter_block(mine, block, kCount / n, MPI_INT, MPI_BXOR, MPI_COMM_WORLD, &requests[k++]);
    /* A message and a blocking collective meanwhile. */
    int token = world_rank, got = -1;
    MPI_Sendrecv(&token, 1, MPI_INT, Right(), 0, &got, 1, MPI_INT, Left(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(got, Left());
    int one = 1, total = 0;
    MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(total, n);
    while (k > 0) MPI_Wait(&requests[--k], MPI_STATUS_IGNORE);
    for (int i = 0; i < kCount; i++) {
      int x = 0, upto = 0, before = 0;
      for (int r = 0; r < n; r++) {
        x ^= Value(r, round, i);
        if (r <= world_rank) upto ^= Value(r, round, i);
        if (r < world_rank) before ^= Value(r, round, i);
      }
      CHECK_EQ(bcast[i], i + round);
      CHECK_EQ(sum[i], x);
      CHECK_EQ(scan[i], upto);
      if (world_rank > 0) CHECK_EQ(exscan[i], before);
      CHECK_EQ(scattered[i], Value(root, world_rank, i));
    }
    for (int i = 0; i < kCount * n; i++) {
      CHECK_EQ(all[i], Value(i / kCount, round, i % kCount));
      CHECK_EQ(in[i], Value(i / kCount, world_rank, i % kCount));
      if (world_rank == root) CHECK_EQ(gathered[i], Value(i / kCount, round, i % kCount));
    }
    for (int i = 0; i < kCount / n; i++) CHECK_EQ(block[i], sum[world_rank * (kCount / n) + i]);
  }
  /* Completed by Testall, twenty allreduces at once. */
  int values[20], results[20], done = 0;
  MPI_Request many[20];
  for (int i = 0; i < 20; i++) {
    values[i] = world_rank + i;
    MPI_Iallreduce(&values[i], &results[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &many[i]);
  }
  while (!done) MPI_Testall(20, many, &done, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 20; i++) CHECK_EQ(results[i], n * i + n * (n - 1) / 2);
  /* The v forms. */
  int counts[kRanks], places[kRanks], totals = 0;
  for (int r = 0; r < n; r++) counts[r] = r * 10, places[r] = totals, totals += r * 10;
  for (int i = 0; i < kCount; i++) mine[i] = Value(world_rank, 0, i);
  MPI_Iallgatherv(mine, counts[world_rank], MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD, &many[0]);
  MPI_Igatherv(mine, counts[world_rank], MPI_INT, gathered, counts, places, MPI_INT, 0, MPI_COMM_WORLD, &many[1]);
  MPI_Iscatterv(out, counts, places, MPI_INT, scattered, counts[world_rank], MPI_INT, 0, MPI_COMM_WORLD, &many[2]);
  MPI_Waitall(3, many, MPI_STATUSES_IGNORE);
  for (int r = 0; r < n; r++) {
    for (int i = 0; i < counts[r]; i++) {
      CHECK_EQ(all[places[r] + i], Value(r, 0, i));
      if (world_rank == 0) CHECK_EQ(gathered[places[r] + i], Value(r, 0, i));
    }
  }
  for (int i = 0; i < counts[world_rank]; i++)
    CHECK_EQ(scattered[i], Value(0, (places[world_rank] + i) / kCount, (places[world_rank] + i) % kCount));
  free(gathered), free(all), free(out), free(in), free(scattered), free(block);
  return End();
}
