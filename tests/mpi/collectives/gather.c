/* Gather, Scatter, Allgather, Alltoall (MPI 4.0 sections 6.5 to 6.8): all roots, sizes, in place. */
#include "tests/mpi/check.h"

static const int kCounts[] = {0, 1, 2, 37, 1000, 9000, 40000};
enum { kMany = sizeof kCounts / sizeof kCounts[0], kMost = 40000 };

static int Value(int from, int to, int i) { return from * 1000003 + to * 10007 + i; }

static void Gather(const int count, int* mine, int* all) {
  for (int root = 0; root < world_size; root++) {
    for (int i = 0; i < count; i++) mine[i] = Value(world_rank, root, i);
    memset(all, 0xee, sizeof(int) * count * world_size);
    const int in_place = count % 2 == 1 && world_rank == root;
    if (in_place) memcpy(all + count * root, mine, count * sizeof(int));
    MPI_Gather(in_place ? MPI_IN_PLACE : mine, count, MPI_INT, world_rank == root ? all : NULL, count, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < count * world_size && world_rank == root; i++) CHECK_EQ(all[i], Value(i / count, root, i % count));
  }
}

static void Scatter(const int count, int* mine, int* all) {
  for (int root = 0; root < world_size; root++) {
    for (int i = 0; i < count * world_size; i++) all[i] = Value(root, i / count, i % count);
    memset(mine, 0xee, sizeof(int) * count);
    const int in_place = count % 2 == 1 && world_rank == root;
    MPI_Scatter(world_rank == root ? all : NULL, count, MPI_INT, in_place ? MPI_IN_PLACE : mine, count, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < count && !in_place; i++) CHECK_EQ(mine[i], Value(root, world_rank, i));
  }
}

static void Allgather(const int count, int* mine, int* all, int in_place) {
  memset(all, 0xee, sizeof(int) * count * world_size);
  int* from = in_place ? all + count * world_rank : mine;
  for (int i = 0; i < count; i++) from[i] = Value(world_rank, 0, i);
  MPI_Allgather(in_place ? MPI_IN_PLACE : from, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < count * world_size; i++) CHECK_EQ(all[i], Value(i / count, 0, i % count));
}

static void Alltoall(const int count, int* out, int* in, int in_place) {
  int* from = in_place ? in : out;
  if (!in_place) memset(in, 0xee, sizeof(int) * count * world_size);
  for (int i = 0; i < count * world_size; i++) from[i] = Value(world_rank, i / count, i % count);
  MPI_Alltoall(in_place ? MPI_IN_PLACE : from, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < count * world_size; i++) CHECK_EQ(in[i], Value(i / count, world_rank, i % count));
}

/* Rows are scattered as columns are gathered: the types differ, the signatures agree. */
static void MixedTypes(void) {
  enum { kRows = 30 };
  int *matrix = malloc(sizeof(int) * kRows * world_size), mine[kRows];
  MPI_Datatype vector, column;
  MPI_Type_vector(kRows, 1, world_size, MPI_INT, &vector);
  MPI_Type_create_resized(vector, 0, sizeof(int), &column);
  MPI_Type_commit(&column);
  for (int i = 0; i < kRows * world_size; i++) matrix[i] = i;
  MPI_Scatter(matrix, 1, column, mine, kRows, MPI_INT, 0, MPI_COMM_WORLD);
  for (int i = 0; i < kRows; i++) CHECK_EQ(mine[i], i * world_size + world_rank);
  memset(matrix, 0, sizeof(int) * kRows * world_size);
  MPI_Gather(mine, kRows, MPI_INT, matrix, 1, column, world_size - 1, MPI_COMM_WORLD);
  for (int i = 0; i < kRows * world_size && world_rank == world_size - 1; i++) CHECK_EQ(matrix[i], i);
  memset(matrix, 0, sizeof(int) * kRows * world_size);
  MPI_Allgather(mine, kRows, MPI_INT, matrix, 1, column, MPI_COMM_WORLD);
  for (int i = 0; i < kRows * world_size; i++) CHECK_EQ(matrix[i], i);
  MPI_Type_free(&vector);
  MPI_Type_free(&column);
  free(matrix);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  int *a = malloc(sizeof(int) * kMost * world_size), *b = malloc(sizeof(int) * kMost * world_size);
  for (int i = 0; i < kMany; i++) {
    Gather(kCounts[i], a, b);
    Scatter(kCounts[i], a, b);
    for (int in_place = 0; in_place < 2; in_place++) {
      Allgather(kCounts[i], a, b, in_place);
      Alltoall(kCounts[i], a, b, in_place);
    }
  }
  MixedTypes();
  free(a);
  free(b);
  return End();
}
