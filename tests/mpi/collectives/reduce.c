/* MPI_Reduce, Allreduce, Reduce_scatter, Reduce_scatter_block, Scan, Exscan with predefined operations and types (MPI 4.0 section 6.9). */
#include "tests/mpi/check.h"

#include <stdint.h>

/* The value of rank `r` at place `i`, small enough for products and for int8_t. */
static int Value(int r, int i) { return (r * 3 + i) % 4 + 1; }

/* Checks every function for one type and operation. `Expected(n, i)` reduces the values of the first n ranks at place i. */
#define TRY(type, mpi_type, op, combine)                                                                                  \
  do {                                                                                                                    \
    type *in = malloc(kMost * sizeof *in), *out = malloc(kMost * sizeof *out);                                            \
    for (int which = 0; which < kCounts; which++) {                                                                       \
      const int count = counts[which];                                                                                    \
      const int root = which % world_size;                                                                                \
      for (int i = 0; i < count; i++) in[i] = (type)Value(world_rank, i), out[i] = (type)0;                               \
      MPI_Reduce(in, out, count, mpi_type, op, root, MPI_COMM_WORLD);                                                     \
      if (world_rank == root) EXPECT_ALL(type, combine, world_size, 0, count);                                            \
      for (int i = 0; i < count; i++) out[i] = (type)0;                                                                   \
      MPI_Allreduce(in, out, count, mpi_type, op, MPI_COMM_WORLD);                                                        \
      EXPECT_ALL(type, combine, world_size, 0, count);                                                                    \
      memcpy(out, in, count * sizeof *in);                                                                                \
      MPI_Allreduce(MPI_IN_PLACE, out, count, mpi_type, op, MPI_COMM_WORLD);                                              \
      EXPECT_ALL(type, combine, world_size, 0, count);                                                                    \
      if (root == 0 || count <= 100 || !MpichDeviates("crashes in a large MPI_Reduce in place to a root other than 0")) { \
        memcpy(out, in, count * sizeof *in);                                                                              \
        MPI_Reduce(world_rank == root ? MPI_IN_PLACE : out, world_rank == root ? out : NULL, count, mpi_type, op, root,   \
                   MPI_COMM_WORLD);                                                                                       \
        if (world_rank == root) EXPECT_ALL(type, combine, world_size, 0, count);                                          \
      }                                                                                                                   \
      MPI_Scan(in, out, count, mpi_type, op, MPI_COMM_WORLD);                                                             \
      EXPECT_ALL(type, combine, world_rank + 1, 0, count);                                                                \
      MPI_Exscan(in, out, count, mpi_type, op, MPI_COMM_WORLD);                                                           \
      if (world_rank > 0) EXPECT_ALL(type, combine, world_rank, 0, count);                                                \
      const int part = count / world_size;                                                                                \
      MPI_Reduce_scatter_block(in, out, part, mpi_type, op, MPI_COMM_WORLD);                                              \
      EXPECT_ALL(type, combine, world_size, part * world_rank, part);                                                     \
      int parts[64], before = 0;                                                                                          \
      for (int r = 0, left = count; r < world_size; r++) {                                                                \
        parts[r] = r == world_size - 1 ? left : left * (r % 3) / 4;                                                       \
        left -= parts[r];                                                                                                 \
        if (r < world_rank) before += parts[r];                                                                           \
      }                                                                                                                   \
      MPI_Reduce_scatter(in, out, parts, mpi_type, op, MPI_COMM_WORLD);                                                   \
      EXPECT_ALL(type, combine, world_size, before, parts[world_rank]);                                                   \
    }                                                                                                                     \
    free(in);                                                                                                             \
    free(out);                                                                                                            \
  } while (0)

/* out[i] of n ranks at place `offset + i`. */
#define EXPECT_ALL(type, combine, n, offset, count)                          \
  do {                                                                       \
    int wrong = 0;                                                           \
    for (int i_ = 0; i_ < (count) && !wrong; i_++) {                         \
      type a = (type)Value(0, (offset) + i_);                                \
      for (int r_ = 1; r_ < (n); r_++) {                                     \
        const type b = (type)Value(r_, (offset) + i_);                       \
        a = (type)(combine);                                                 \
      }                                                                      \
      if (out[i_] != a) {                                                    \
        wrong = 1;                                                           \
        REPORT("%s %s of %d: place %d", #type, #combine, count, i_);         \
      }                                                                      \
    }                                                                        \
  } while (0)

static const int counts[] = {1, 100, 0, 5, 3000, 70000};
enum { kFewCounts = 2, kAllCounts = sizeof counts / sizeof counts[0], kMost = 70000 };

#define ARITHMETIC(type, mpi_type)                      \
  do {                                                  \
    TRY(type, mpi_type, MPI_SUM, a + b);                \
    TRY(type, mpi_type, MPI_PROD, a* b);                \
    TRY(type, mpi_type, MPI_MAX, a > b ? a : b);        \
    TRY(type, mpi_type, MPI_MIN, a < b ? a : b);        \
  } while (0)

#define LOGICAL(type, mpi_type)                         \
  do {                                                  \
    TRY(type, mpi_type, MPI_LAND, a&& b);               \
    TRY(type, mpi_type, MPI_LOR, a || b);               \
    TRY(type, mpi_type, MPI_LXOR, !a != !b);            \
  } while (0)

#define BITWISE(type, mpi_type)                         \
  do {                                                  \
    TRY(type, mpi_type, MPI_BAND, a& b);                \
    TRY(type, mpi_type, MPI_BOR, a | b);                \
    TRY(type, mpi_type, MPI_BXOR, a ^ b);               \
  } while (0)

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  int kCounts = kAllCounts;
  TRY(int, MPI_INT, MPI_SUM, a + b);
  TRY(double, MPI_DOUBLE, MPI_MAX, a > b ? a : b);
  kCounts = kFewCounts;
  ARITHMETIC(int8_t, MPI_INT8_T);
  ARITHMETIC(unsigned short, MPI_UNSIGNED_SHORT);
  ARITHMETIC(int, MPI_INT);
  ARITHMETIC(long, MPI_LONG);
  ARITHMETIC(uint64_t, MPI_UINT64_T);
  ARITHMETIC(float, MPI_FLOAT);
  ARITHMETIC(double, MPI_DOUBLE);
  ARITHMETIC(long double, MPI_LONG_DOUBLE);
  ARITHMETIC(MPI_Aint, MPI_AINT);
  LOGICAL(int, MPI_INT);
  LOGICAL(_Bool, MPI_C_BOOL);
  BITWISE(unsigned char, MPI_BYTE);
  BITWISE(unsigned, MPI_UNSIGNED);
  BITWISE(int64_t, MPI_INT64_T);
  return End();
}
