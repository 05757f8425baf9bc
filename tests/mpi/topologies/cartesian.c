/* Cartesian topologies (MPI 4.0 sections 8.5.1, 8.5.2 and 8.5.5 to 8.5.8). */
#include "tests/mpi/check.h"

static void Dims(void) {
  static const struct {
    int nodes, dimensions, given[4], expected[4];
  } cases[] = {
      {1, 1, {0}, {1}},
      {6, 2, {0, 0}, {3, 2}},
      {7, 2, {0, 0}, {7, 1}},
      {6, 3, {0, 3, 0}, {2, 3, 1}},
      {12, 3, {0, 0, 0}, {3, 2, 2}},
      {16, 2, {0, 0}, {4, 4}},
      {24, 3, {0, 0, 0}, {4, 3, 2}},
      {64, 3, {0, 0, 0}, {4, 4, 4}},
      {72, 4, {0, 0, 0, 0}, {4, 3, 3, 2}},
      {360, 3, {0, 0, 0}, {10, 6, 6}},
      {1008, 3, {0, 0, 0}, {12, 12, 7}},
      {4096, 4, {0, 0, 0, 0}, {8, 8, 8, 8}},
      /* 37, 30, 28, 19 and 37, 27, 25, 13 differ as much, with less in the smallest. */
      {590520, 4, {0, 0, 0, 0}, {38, 37, 21, 20}},
      {324675, 4, {0, 0, 0, 0}, {39, 37, 15, 15}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int dims[4];
    memcpy(dims, cases[i].given, sizeof dims);
    MPI_Dims_create(cases[i].nodes, cases[i].dimensions, dims);
    for (int j = 0; j < cases[i].dimensions; j++) {
      if (dims[j] != cases[i].expected[j])
        REPORT("dimension %d of %d nodes is %d, not %d", j, cases[i].nodes, dims[j], cases[i].expected[j]);
    }
  }
}

static void Ring(void) {
  MPI_Comm ring;
  int dims[1] = {world_size}, periods[1] = {5}, coords[1] = {-1}, source, destination, rank, kind, count, in = -1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
  MPI_Topo_test(ring, &kind);
  CHECK_EQ(kind, MPI_CART);
  MPI_Cartdim_get(ring, &count);
  CHECK_EQ(count, 1);
  MPI_Cart_get(ring, 1, dims, periods, coords);
  CHECK_EQ(dims[0], world_size);
  CHECK(periods[0] != 0);
  CHECK_EQ(coords[0], world_rank);
  coords[0] = -1;
  MPI_Cart_rank(ring, coords, &rank);
  CHECK_EQ(rank, world_size - 1);
  coords[0] = 3 * world_size;
  MPI_Cart_rank(ring, coords, &rank);
  CHECK_EQ(rank, 0);
  MPI_Cart_shift(ring, 0, 1, &source, &destination);
  CHECK_EQ(source, Left());
  CHECK_EQ(destination, Right());
  MPI_Cart_shift(ring, 0, -2, &source, &destination);
  CHECK_EQ(source, (world_rank + 2) % world_size);
  CHECK_EQ(destination, (world_rank + 2 * world_size - 2) % world_size);
  MPI_Sendrecv(&world_rank, 1, MPI_INT, destination, 0, &in, 1, MPI_INT, source, 0, ring, MPI_STATUS_IGNORE);
  CHECK_EQ(in, source);
  MPI_Comm dup;
  MPI_Comm_dup(ring, &dup);
  MPI_Topo_test(dup, &kind);
  CHECK_EQ(kind, MPI_CART);
  MPI_Cart_get(dup, 1, dims, periods, coords);
  CHECK_EQ(coords[0], world_rank);
  MPI_Comm_free(&dup);
  MPI_Comm_free(&ring);
}

/* A grid of 2 columns that leaves out the last of an odd number of ranks. */
static void Grid(void) {
  const int rows = world_size / 2;
  if (rows == 0) return;
  MPI_Comm grid, row, column, point;
  int dims[2] = {rows, 2}, periods[2] = {0, 1}, coords[2], source, destination, size, new_rank, count;
  MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, &new_rank);
  if (world_rank >= 2 * rows) CHECK_EQ(new_rank, MPI_UNDEFINED);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
  CHECK_EQ(grid == MPI_COMM_NULL, world_rank >= 2 * rows);
  if (grid == MPI_COMM_NULL) return;
  MPI_Cart_coords(grid, world_rank, 2, coords);
  CHECK_EQ(coords[0], world_rank / 2);
  CHECK_EQ(coords[1], world_rank % 2);
  MPI_Cart_shift(grid, 0, 1, &source, &destination);
  CHECK_EQ(source, coords[0] == 0 ? MPI_PROC_NULL : world_rank - 2);
  CHECK_EQ(destination, coords[0] == rows - 1 ? MPI_PROC_NULL : world_rank + 2);
  MPI_Cart_shift(grid, 1, 1, &source, &destination);
  CHECK_EQ(source, world_rank ^ 1);
  CHECK_EQ(destination, world_rank ^ 1);
  MPI_Cart_sub(grid, (int[]){0, 1}, &row);
  MPI_Comm_size(row, &size);
  CHECK_EQ(size, 2);
  int sum = 0, kept_dims[2], kept_periods[2], kept_coords[2];
  MPI_Allreduce(&coords[0], &sum, 1, MPI_INT, MPI_SUM, row);
  CHECK_EQ(sum, 2 * coords[0]);
  MPI_Cartdim_get(row, &count);
  CHECK_EQ(count, 1);
  MPI_Cart_get(row, 1, kept_dims, kept_periods, kept_coords);
  CHECK_EQ(kept_dims[0], 2);
  CHECK(kept_periods[0]);
  CHECK_EQ(kept_coords[0], coords[1]);
  MPI_Cart_sub(grid, (int[]){1, 0}, &column);
  MPI_Comm_size(column, &size);
  CHECK_EQ(size, rows);
  MPI_Allreduce(&coords[1], &sum, 1, MPI_INT, MPI_SUM, column);
  CHECK_EQ(sum, rows * coords[1]);
  if (!MpichDeviates("gives a point to the first process only")) {
    MPI_Cart_sub(grid, (int[]){0, 0}, &point);
    MPI_Comm_size(point, &size);
    CHECK_EQ(size, 1);
    MPI_Cartdim_get(point, &count);
    CHECK_EQ(count, 0);
    MPI_Comm_free(&point);
  }
  MPI_Comm_free(&column);
  MPI_Comm_free(&row);
  MPI_Comm_free(&grid);
}

static void Point(void) {
  MPI_Comm point;
  int count = -1, rank = -1;
  MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &point);
  CHECK_EQ(point == MPI_COMM_NULL, world_rank > 0);
  if (point == MPI_COMM_NULL) return;
  MPI_Cartdim_get(point, &count);
  CHECK_EQ(count, 0);
  MPI_Cart_rank(point, NULL, &rank);
  CHECK_EQ(rank, 0);
  MPI_Comm_free(&point);
}

static void Refuses(void) {
  MPI_Comm cart, made;
  int dims[2] = {1, 1}, periods[2] = {0, 0}, too_many[1] = {world_size + 1}, out[2], coords[2] = {-1, 0};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, 1, too_many, periods, 0, &made), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, -1, dims, periods, 0, &made), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, 1, NULL, periods, 0, &made), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_map(MPI_COMM_WORLD, 1, too_many, periods, out), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Cartdim_get(MPI_COMM_WORLD, out), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Cart_sub(MPI_COMM_WORLD, dims, &made), MPI_ERR_TOPOLOGY);
  MPI_Cart_create(MPI_COMM_SELF, 2, dims, periods, 0, &cart);
  MPI_Comm_set_errhandler(cart, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Cart_rank(cart, coords, out), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_coords(cart, 1, 2, out), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Cart_coords(cart, 0, 1, out), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_shift(cart, 2, 1, &out[0], &out[1]), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_shift(cart, -1, 1, &out[0], &out[1]), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Graphdims_get(cart, &out[0], &out[1]), MPI_ERR_TOPOLOGY);
  MPI_Comm_free(&cart);
  CHECK_CLASS(MPI_Dims_create(6, 2, (int[]){0, 4}), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Dims_create(6, 2, (int[]){0, -1}), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Dims_create(6, 2, (int[]){2, 2}), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Dims_create(-1, 2, (int[]){0, 0}), MPI_ERR_ARG);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  Dims();
  Ring();
  Grid();
  Point();
  Refuses();
  return End();
}
