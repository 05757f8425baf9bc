/* The forms with a count for each rank: Gatherv, Scatterv, Allgatherv, Alltoallv, Alltoallw, some counts zero, gaps between places. */
#include "tests/mpi/check.h"

enum { kGap = 3, kRanks = 64 };

static int scale;
static int Count(int rank) { return rank % 3 == 1 ? 0 : (rank + 1) * scale; }
static int CountBetween(int from, int to) { return (from * 5 + to * 3) % 4 * scale; }
static int Value(int from, int to, int i) { return from * 1000003 + to * 10007 + i; }

static int Places(int* counts, int* places) {
  int total = 0;
  for (int r = world_size - 1; r >= 0; r--) {  /* the last rank's place comes first */
    counts[r] = Count(r);
    places[r] = total;
    total += counts[r] + kGap;
  }
  return total;
}

static void Rooted(void) {
  int counts[kRanks], places[kRanks];
  const int total = Places(counts, places);
  int *all = malloc(total * sizeof(int)), *mine = malloc((Count(world_rank) + 1) * sizeof(int));
  for (int root = 0; root < world_size; root++) {
    for (int i = 0; i < total; i++) all[i] = -7;
    for (int i = 0; i < counts[world_rank]; i++) mine[i] = Value(world_rank, root, i);
    MPI_Gatherv(mine, counts[world_rank], MPI_INT, all, counts, places, MPI_INT, root, MPI_COMM_WORLD);
    for (int r = 0; r < world_size && world_rank == root; r++) {
      for (int i = 0; i < counts[r]; i++) CHECK_EQ(all[places[r] + i], Value(r, root, i));
      for (int i = 0; i < kGap; i++) CHECK_EQ(all[places[r] + counts[r] + i], -7);
    }
    for (int r = 0; r < world_size; r++) {
      for (int i = 0; i < counts[r]; i++) all[places[r] + i] = Value(root, r, i);
    }
    mine[counts[world_rank]] = -8;
    MPI_Scatterv(all, counts, places, MPI_INT, mine, counts[world_rank], MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < counts[world_rank]; i++) CHECK_EQ(mine[i], Value(root, world_rank, i));
    CHECK_EQ(mine[counts[world_rank]], -8);
  }
  for (int in_place = 0; in_place < 2; in_place++) {
    for (int i = 0; i < total; i++) all[i] = -7;
    int* from = in_place ? all + places[world_rank] : mine;
    for (int i = 0; i < counts[world_rank]; i++) from[i] = Value(world_rank, 0, i);
    MPI_Allgatherv(in_place ? MPI_IN_PLACE : mine, counts[world_rank], MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < world_size; r++) {
      for (int i = 0; i < counts[r]; i++) CHECK_EQ(all[places[r] + i], Value(r, 0, i));
      for (int i = 0; i < kGap; i++) CHECK_EQ(all[places[r] + counts[r] + i], -7);
    }
  }
  free(all);
  free(mine);
}

static void Alltoall(char form) {
  int out_counts[kRanks], out_places[kRanks], in_counts[kRanks], in_places[kRanks], out_total = 0, in_total = 0;
  MPI_Datatype out_types[kRanks], in_types[kRanks];
  for (int r = 0; r < world_size; r++) {
    out_counts[r] = CountBetween(world_rank, r);
    in_counts[r] = CountBetween(r, world_rank);
    out_places[r] = out_total;
    in_places[r] = in_total;
    out_total += out_counts[r] + kGap;
    in_total += in_counts[r] + kGap;
    /* Alltoallw: ints go out as pairs where the count allows it, and come in as ints or pairs. */
    out_types[r] = out_counts[r] % 2 == 0 ? MPI_2INT : MPI_INT;
    in_types[r] = MPI_INT;
  }
  int *out = malloc(out_total * sizeof(int)), *in = malloc(in_total * sizeof(int));
  for (int r = 0; r < world_size; r++) {
    for (int i = 0; i < out_counts[r]; i++) out[out_places[r] + i] = Value(world_rank, r, i);
  }
  for (int i = 0; i < in_total; i++) in[i] = -7;
  if (form == 'v') {
    MPI_Alltoallv(out, out_counts, out_places, MPI_INT, in, in_counts, in_places, MPI_INT, MPI_COMM_WORLD);
  } else {
    for (int r = 0; r < world_size; r++) {
      if (out_types[r] == MPI_2INT) out_counts[r] /= 2;
      out_places[r] *= sizeof(int);
    }
    int in_bytes[kRanks];
    for (int r = 0; r < world_size; r++) in_bytes[r] = in_places[r] * (int)sizeof(int);
    MPI_Alltoallw(out, out_counts, out_places, out_types, in, in_counts, in_bytes, in_types, MPI_COMM_WORLD);
  }
  for (int r = 0; r < world_size; r++) {
    for (int i = 0; i < in_counts[r]; i++) CHECK_EQ(in[in_places[r] + i], Value(r, world_rank, i));
    for (int i = 0; i < kGap; i++) CHECK_EQ(in[in_places[r] + in_counts[r] + i], -7);
  }
  free(out);
  free(in);
}

/* In place, counts between two ranks must agree. */
static void AlltoallvInPlace(void) {
  int counts[kRanks], places[kRanks], total = 0;
  for (int r = 0; r < world_size; r++) {
    counts[r] = (world_rank + r) % 3 * scale;
    places[r] = total;
    total += counts[r] + kGap;
  }
  int* buffer = malloc(total * sizeof(int));
  for (int r = 0; r < world_size; r++) {
    for (int i = 0; i < counts[r]; i++) buffer[places[r] + i] = Value(world_rank, r, i);
  }
  MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, buffer, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < world_size; r++) {
    for (int i = 0; i < counts[r]; i++) CHECK_EQ(buffer[places[r] + i], Value(r, world_rank, i));
  }
  free(buffer);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  for (scale = 1; scale <= 10000; scale *= 100) {
    Rooted();
    Alltoall('v');
    Alltoall('w');
    AlltoallvInPlace();
  }
  return End();
}
