/* Put, Get and Accumulate with derived types on one or both sides, few large and many small pieces; types freed before the fence. */
#include "tests/mpi/check.h"

enum { kRows = 120, kColumns = 80 };
static double from[kRows][kColumns], into[kRows][kColumns];

static double Value(int rank, int i, int j) { return rank * 1e6 + i * 1000 + j; }

static void Reset(void) {
  for (int i = 0; i < kRows; i++) {
    for (int j = 0; j < kColumns; j++) from[i][j] = Value(world_rank, i, j), into[i][j] = -1;
  }
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Win win;
  MPI_Datatype column, block, row_pairs;
  MPI_Win_create(into, sizeof into, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win);

  /* A column to a column of another index. */
  Reset();
  MPI_Type_vector(kRows, 1, kColumns, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  MPI_Win_fence(0, win);
  MPI_Put(&from[0][5], 1, column, Right(), 9, 1, column, win);
  MPI_Type_free(&column);
  MPI_Win_fence(0, win);
  for (int i = 0; i < kRows; i++) {
    for (int j = 0; j < kColumns; j++) CHECK(into[i][j] == (j == 9 ? Value(Left(), i, 5) : -1));
  }

  /* Contiguous here, a block of rows and columns there, and fetched back contiguous. */
  Reset();
  MPI_Type_create_subarray(2, (int[]){kRows, kColumns}, (int[]){30, 20}, (int[]){11, 13}, MPI_ORDER_C, MPI_DOUBLE, &block);
  MPI_Type_commit(&block);
  double plain[600], back[600];
  for (int i = 0; i < 600; i++) plain[i] = world_rank * 1000 + i, back[i] = -1;
  MPI_Win_fence(0, win);
  MPI_Put(plain, 600, MPI_DOUBLE, Right(), 0, 1, block, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < kRows; i++) {
    for (int j = 0; j < kColumns; j++) {
      const int inside = i >= 11 && i < 41 && j >= 13 && j < 33;
      CHECK(into[i][j] == (inside ? Left() * 1000 + (i - 11) * 20 + j - 13 : -1));
    }
  }
  MPI_Win_fence(0, win);
  MPI_Get(back, 600, MPI_DOUBLE, Right(), 0, 1, block, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < 600; i++) CHECK(back[i] == plain[i]);

  /* The block is added to twice, from a type with gaps. */
  MPI_Type_vector(300, 2, 4, MPI_DOUBLE, &row_pairs);
  MPI_Type_commit(&row_pairs);
  MPI_Win_fence(0, win);
  for (int times = 0; times < 2; times++) MPI_Accumulate(from, 1, row_pairs, Right(), 0, 1, block, MPI_SUM, win);
  MPI_Win_fence(0, win);
  for (int k = 0; k < 600; k++) {
    const int place = k / 2 * 4 + k % 2;
    CHECK(into[11 + k / 20][13 + k % 20] == Left() * 1000 + k + 2 * Value(Left(), place / kColumns, place % kColumns));
  }
  CHECK(into[0][0] == -1 && into[11][12] == -1 && into[40][33] == -1);
  MPI_Win_fence(0, win);

  /* A struct of ints and doubles, and a type with several counts. */
  struct Mixed {
    int a;
    double b;
    char c[5];
  } out[50], *memory;
  MPI_Datatype mixed, padded;
  MPI_Type_create_struct(3, (int[]){1, 1, 5}, (MPI_Aint[]){0, 8, 16}, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE, MPI_CHAR}, &mixed);
  MPI_Type_create_resized(mixed, 0, sizeof(struct Mixed), &padded);
  MPI_Type_commit(&padded);
  MPI_Win structs;
  MPI_Win_allocate(sizeof(struct Mixed) * 50, sizeof(struct Mixed), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &structs);
  for (int i = 0; i < 50; i++) out[i] = (struct Mixed){i + world_rank, i * 0.5, "abcd"};
  MPI_Win_fence(0, structs);
  MPI_Put(out, 40, padded, Right(), 10, 40, padded, structs);
  MPI_Win_fence(0, structs);
  for (int i = 0; i < 40; i++) {
    CHECK_EQ(memory[10 + i].a, i + Left());
    CHECK_NEAR(memory[10 + i].b, i * 0.5, 0);
    CHECK_STR(memory[10 + i].c, "abcd");
  }
  MPI_Win_free(&structs);
  MPI_Type_free(&mixed), MPI_Type_free(&padded), MPI_Type_free(&block), MPI_Type_free(&row_pairs);
  MPI_Win_free(&win);
  return End();
}
