/* Neighbourhood collectives (MPI 4.0 section 8.6) on a grid with open and closed borders and on directed graphs. */
#include "tests/mpi/check.h"

enum { kCount = 500 };

static int Value(int from, int slot, int i) { return from * 100000 + slot * 1000 + i; }

/* On a Cartesian grid the neighbours are, per dimension, the one before and the one after; at an open border nobody. */
static void OnGrid(int periodic) {
  MPI_Comm grid;
  int dims[2] = {0, 0}, neighbors[4];
  MPI_Dims_create(world_size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, (int[]){periodic, periodic}, 0, &grid);
  MPI_Cart_shift(grid, 0, 1, &neighbors[0], &neighbors[1]);
  MPI_Cart_shift(grid, 1, 1, &neighbors[2], &neighbors[3]);
  static int out[4 * kCount], in[4 * kCount];
  MPI_Request request;
  for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
    for (int i = 0; i < 4 * kCount; i++) out[i] = Value(world_rank, i / kCount, i % kCount), in[i] = -1;
    if (nonblocking) {
      MPI_Ineighbor_allgather(out, kCount, MPI_INT, in, kCount, MPI_INT, grid, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Neighbor_allgather(out, kCount, MPI_INT, in, kCount, MPI_INT, grid);
    }
    for (int i = 0; i < 4 * kCount; i++) {
      const int from = neighbors[i / kCount];
      CHECK_EQ(in[i], from == MPI_PROC_NULL ? -1 : Value(from, 0, i % kCount));
    }
    for (int i = 0; i < 4 * kCount; i++) in[i] = -1;
    if (nonblocking) {
      MPI_Ineighbor_alltoall(out, kCount, MPI_INT, in, kCount, MPI_INT, grid, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Neighbor_alltoall(out, kCount, MPI_INT, in, kCount, MPI_INT, grid);
    }
    for (int i = 0; i < 4 * kCount; i++) {
      const int slot = i / kCount, from = neighbors[slot];
      if (world_size == 1 && MpichDeviates("mixes the directions of a rank that is its own neighbour in two dimensions")) continue;
      /* What comes from before is what it sent after, and the other way round: also when both are the same rank. */
      CHECK_EQ(in[i], from == MPI_PROC_NULL ? -1 : Value(from, slot ^ 1, i % kCount));
    }
  }
  MPI_Comm_free(&grid);
}

/* Rank r sends to r + 1 and r + 2 with other counts for each. */
static void OnGraph(void) {
  const int n = world_size, r = world_rank;
  int to[2] = {(r + 1) % n, (r + 2) % n}, from[2] = {(r + n - 1) % n, (r + 2 * n - 2) % n};
  MPI_Comm graph;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  static int out[2 * kCount], in[2 * kCount];
  for (int i = 0; i < 2 * kCount; i++) out[i] = Value(r, i / kCount, i % kCount), in[i] = -1;
  int out_counts[2] = {10 + r, 2 * (10 + r)}, out_places[2] = {0, kCount};
  int in_counts[2] = {10 + from[0], 2 * (10 + from[1])}, in_places[2] = {kCount, 0};
  MPI_Neighbor_alltoallv(out, out_counts, out_places, MPI_INT, in, in_counts, in_places, MPI_INT, graph);
  for (int s = 0; s < 2; s++) {
    for (int i = 0; i < kCount; i++) CHECK_EQ(in[in_places[s] + i], i < in_counts[s] ? Value(from[s], s, i) : -1);
  }
  for (int i = 0; i < 2 * kCount; i++) in[i] = -1;
  in_counts[1] = 10 + from[1];
  MPI_Neighbor_allgatherv(out, 10 + r, MPI_INT, in, in_counts, in_places, MPI_INT, graph);
  for (int s = 0; s < 2; s++) {
    for (int i = 0; i < kCount; i++) CHECK_EQ(in[in_places[s] + i], i < in_counts[s] ? Value(from[s], 0, i) : -1);
  }
  for (int i = 0; i < 2 * kCount; i++) in[i] = -1;
  MPI_Datatype types[2] = {MPI_INT, MPI_FLOAT}, in_types[2] = {MPI_INT, MPI_FLOAT};
  MPI_Aint out_bytes[2] = {0, kCount * sizeof(int)}, in_bytes[2] = {kCount * sizeof(int), 0};
  int counts[2] = {7, 9};
  MPI_Neighbor_alltoallw(out, counts, out_bytes, types, in, counts, in_bytes, in_types, graph);
  for (int s = 0; s < 2; s++) {
    for (int i = 0; i < kCount; i++) CHECK_EQ(in[in_places[s] + i], i < counts[s] ? Value(from[s], s, i) : -1);
  }
  MPI_Comm_free(&graph);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  OnGrid(0);
  OnGrid(1);
  OnGraph();
  return End();
}
