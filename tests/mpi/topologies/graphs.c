/* Graph and distributed graph topologies (MPI 4.0 sections 8.5.3 to 8.5.5). */
#include "tests/mpi/check.h"

/* Everyone with rank 0, which has all the others. */
static void Star(void) {
  MPI_Comm star;
  int index[64], edges[128], count = 0, kind, nodes, edge_count, degree, neighbours[64], new_rank;
  for (int i = 1; i < world_size; i++) edges[count++] = i;
  index[0] = count;
  for (int i = 1; i < world_size; i++) {
    edges[count++] = 0;
    index[i] = count;
  }
  MPI_Graph_map(MPI_COMM_WORLD, world_size, index, edges, &new_rank);
  CHECK(new_rank >= 0 && new_rank < world_size);
  MPI_Graph_create(MPI_COMM_WORLD, world_size, index, edges, 0, &star);
  MPI_Topo_test(star, &kind);
  CHECK_EQ(kind, MPI_GRAPH);
  MPI_Graphdims_get(star, &nodes, &edge_count);
  CHECK_EQ(nodes, world_size);
  CHECK_EQ(edge_count, count);
  int got_index[64] = {0}, got_edges[128] = {0};
  MPI_Graph_get(star, nodes, edge_count, got_index, got_edges);
  CHECK(memcmp(got_index, index, sizeof(int) * nodes) == 0);
  CHECK(memcmp(got_edges, edges, sizeof(int) * edge_count) == 0);
  MPI_Graph_neighbors_count(star, 0, &degree);
  CHECK_EQ(degree, world_size - 1);
  MPI_Graph_neighbors(star, 0, degree, neighbours);
  for (int i = 0; i < degree; i++) CHECK_EQ(neighbours[i], i + 1);
  if (world_size > 1) {
    MPI_Graph_neighbors_count(star, world_size - 1, &degree);
    CHECK_EQ(degree, 1);
    MPI_Graph_neighbors(star, world_size - 1, 1, neighbours);
    CHECK_EQ(neighbours[0], 0);
  }
  MPI_Comm_free(&star);
}

/* Fewer nodes than ranks, loops, double edges. */
static void Small(void) {
  MPI_Comm graph;
  int index[1] = {2}, edges[2] = {0, 0}, degree = -1;
  MPI_Graph_create(MPI_COMM_WORLD, 1, index, edges, 0, &graph);
  CHECK_EQ(graph == MPI_COMM_NULL, world_rank > 0);
  if (graph != MPI_COMM_NULL) {
    MPI_Graph_neighbors_count(graph, 0, &degree);
    CHECK_EQ(degree, 2);
    MPI_Comm_free(&graph);
  }
  MPI_Graph_create(MPI_COMM_WORLD, 0, index, edges, 0, &graph);
  CHECK(graph == MPI_COMM_NULL);
}

static void Adjacent(void) {
  MPI_Comm graph, dup;
  const int sources[2] = {Left(), world_rank}, destinations[2] = {Right(), world_rank};
  const int source_weights[2] = {Left() + 10, 3}, destination_weights[2] = {world_rank + 10, 3};
  int kind, in, out, weighted;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, source_weights, 2, destinations, destination_weights,
                                 MPI_INFO_NULL, 0, &graph);
  MPI_Comm_dup(graph, &dup);
  MPI_Comm_free(&graph);
  MPI_Topo_test(dup, &kind);
  CHECK_EQ(kind, MPI_DIST_GRAPH);
  MPI_Dist_graph_neighbors_count(dup, &in, &out, &weighted);
  CHECK_EQ(in, 2);
  CHECK_EQ(out, 2);
  CHECK(weighted);
  int got[4][2];
  MPI_Dist_graph_neighbors(dup, 2, got[0], got[1], 2, got[2], got[3]);
  for (int i = 0; i < 2; i++) {
    CHECK_EQ(got[0][i], sources[i]);
    CHECK_EQ(got[1][i], source_weights[i]);
    CHECK_EQ(got[2][i], destinations[i]);
    CHECK_EQ(got[3][i], destination_weights[i]);
  }
  MPI_Comm_free(&dup);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, sources, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &graph);
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
  CHECK_EQ(in, 1);
  CHECK_EQ(out, 0);
  CHECK(!weighted);
  MPI_Dist_graph_neighbors(graph, 1, got[0], MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED);
  CHECK_EQ(got[0][0], sources[0]);
  MPI_Comm_free(&graph);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL,
                                 0, &graph);
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
  CHECK_EQ(in, 0);
  CHECK(weighted);
  MPI_Comm_free(&graph);
}

static int Weight(int source, int destination) { return 100 * source + destination; }

/* Each rank names edges of others: rank r those into r from everyone, all of them, so that sources and destinations
 * must be told. */
static void Distributed(void) {
  MPI_Comm graph;
  int sources[64], degrees[64], destinations[64], weights[64], in, out, weighted;
  for (int i = 0; i < world_size; i++) {
    sources[i] = i;
    degrees[i] = 1;
    destinations[i] = Right();
    weights[i] = Weight(i, Right());
  }
  MPI_Dist_graph_create(MPI_COMM_WORLD, world_size, sources, degrees, destinations, weights, MPI_INFO_NULL, 0, &graph);
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
  CHECK_EQ(in, world_size);
  CHECK_EQ(out, world_size);
  CHECK(weighted);
  int got[4][64], seen[64] = {0};
  MPI_Dist_graph_neighbors(graph, in, got[0], got[1], out, got[2], got[3]);
  for (int i = 0; i < world_size; i++) {
    CHECK_EQ(got[1][i], Weight(got[0][i], world_rank));
    CHECK_EQ(got[3][i], Weight(world_rank, got[2][i]));
    seen[got[0][i]] += 1;
    seen[got[2][i]] += 10;
  }
  for (int i = 0; i < world_size; i++) CHECK_EQ(seen[i], 11);
  MPI_Comm_free(&graph);
  /* Only rank 0 has edges to name: a ring. */
  for (int i = 0; i < world_size; i++) destinations[i] = (i + 1) % world_size;
  MPI_Dist_graph_create(MPI_COMM_WORLD, world_rank == 0 ? world_size : 0, sources, degrees, destinations,
                        MPI_UNWEIGHTED, MPI_INFO_NULL, 1, &graph);
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
  CHECK_EQ(in, 1);
  CHECK_EQ(out, 1);
  CHECK(!weighted);
  int rank;
  MPI_Comm_rank(graph, &rank);
  MPI_Dist_graph_neighbors(graph, 1, got[0], MPI_UNWEIGHTED, 1, got[2], MPI_UNWEIGHTED);
  CHECK_EQ(got[0][0], (rank + world_size - 1) % world_size);
  CHECK_EQ(got[2][0], (rank + 1) % world_size);
  MPI_Comm_free(&graph);
}

static void Refuses(void) {
  MPI_Comm made, graph;
  int index[2] = {1, 0}, edges[2] = {0, 0}, outside[1] = {5}, negative[1] = {-1}, value;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Graph_create(MPI_COMM_SELF, 2, index, edges, 0, &made), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Graph_create(MPI_COMM_SELF, 1, index, outside, 0, &made), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Graph_create(MPI_COMM_SELF, 1, negative, edges, 0, &made), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Graph_neighbors_count(MPI_COMM_SELF, 0, &value), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Dist_graph_neighbors_count(MPI_COMM_SELF, &value, &value, &value), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, -1, edges, edges, 1, edges, edges, MPI_INFO_NULL, 0, &made),
              MPI_ERR_ARG);
  CHECK_CLASS(MPI_Dist_graph_create(MPI_COMM_SELF, -1, edges, edges, edges, edges, MPI_INFO_NULL, 0, &made),
              MPI_ERR_ARG);
  MPI_Graph_create(MPI_COMM_SELF, 1, index, edges, 0, &graph);
  MPI_Comm_set_errhandler(graph, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Graph_neighbors_count(graph, 1, &value), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Cartdim_get(graph, &value), MPI_ERR_TOPOLOGY);
  MPI_Comm_free(&graph);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  Star();
  Small();
  Adjacent();
  Distributed();
  Refuses();
  return End();
}
