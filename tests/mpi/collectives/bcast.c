/* MPI_Bcast (MPI 4.0 section 6.4): every root, sizes around the switch points, derived types, one after the other without barriers. */
#include "tests/mpi/check.h"

static const int kSizes[] = {0, 1, 3, 8, 1000, 2048, 12287, 12288, 65536, 100001, 524288, 1000003};
enum { kCount = sizeof kSizes / sizeof kSizes[0], kLargest = 1000003 };

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  char* buffer = malloc(kLargest);
  for (int i = 0; i < kCount; i++) {
    for (int root = 0; root < world_size; root++) {
      if (world_rank == root) {
        FillPattern(buffer, kSizes[i], root, i);
      } else {
        memset(buffer, 0xee, kSizes[i]);
      }
      CHECK_OK(MPI_Bcast(buffer, kSizes[i], MPI_BYTE, root, MPI_COMM_WORLD));
      CHECK_PATTERN(buffer, kSizes[i], root, i);
    }
  }
  /* A column at the root is a row elsewhere: type signatures agree, type maps do not. */
  int matrix[50][50];
  MPI_Datatype column;
  MPI_Type_vector(50, 1, 50, MPI_INT, &column);
  MPI_Type_commit(&column);
  for (int i = 0; i < 2500; i++) matrix[i / 50][i % 50] = world_rank == world_size - 1 ? i : -1;
  if (world_rank == world_size - 1) {
    MPI_Bcast(&matrix[0][7], 1, column, world_size - 1, MPI_COMM_WORLD);
  } else {
    MPI_Bcast(matrix[3], 50, MPI_INT, world_size - 1, MPI_COMM_WORLD);
    for (int i = 0; i < 50; i++) CHECK_EQ(matrix[3][i], i * 50 + 7);
    CHECK_EQ(matrix[4][0], -1);
    CHECK_EQ(matrix[2][49], -1);
  }
  MPI_Type_free(&column);
  /* Many small ones back to back with changing roots. */
  for (int i = 0; i < 300; i++) {
    int value = world_rank == i % world_size ? i : -1;
    MPI_Bcast(&value, 1, MPI_INT, i % world_size, MPI_COMM_WORLD);
    CHECK_EQ(value, i);
  }
  free(buffer);
  return End();
}
