/* Sizes, bounds and true bounds (MPI 4.0 sections 5.1.7 to 5.1.9); sizes of predefined types; MPI_Get_address. */
#include <complex.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/mpi/check.h"

static void Bounds(int line, MPI_Datatype type, long size, long lower, long extent, long true_lower, long true_extent) {
  int actual_size, before = failures;
  MPI_Aint a, b;
  MPI_Count c, d, e;
  MPI_Type_size(type, &actual_size);
  CHECK_EQ(actual_size, size);
  MPI_Type_size_x(type, &c);
  CHECK_EQ(c, size);
  MPI_Type_size_c(type, &c);
  CHECK_EQ(c, size);
  MPI_Type_get_extent(type, &a, &b);
  CHECK_EQ(a, lower);
  CHECK_EQ(b, extent);
  MPI_Type_get_true_extent(type, &a, &b);
  CHECK_EQ(a, true_lower);
  CHECK_EQ(b, true_extent);
  MPI_Type_get_extent_x(type, &d, &e);
  CHECK_EQ(d, lower);
  CHECK_EQ(e, extent);
  MPI_Type_get_true_extent_x(type, &d, &e);
  CHECK_EQ(d, true_lower);
  CHECK_EQ(e, true_extent);
  if (failures > before) fprintf(stderr, "  ... of the type in line %d\n", line);
}
#define BOUNDS(...) Bounds(__LINE__, __VA_ARGS__)
#define PLAIN(mpi_type, type) BOUNDS(mpi_type, sizeof(type), 0, sizeof(type), 0, sizeof(type))

static void Predefined(void) {
  PLAIN(MPI_CHAR, char);
  PLAIN(MPI_SIGNED_CHAR, char);
  PLAIN(MPI_UNSIGNED_CHAR, char);
  PLAIN(MPI_BYTE, char);
  PLAIN(MPI_WCHAR, wchar_t);
  PLAIN(MPI_SHORT, short);
  PLAIN(MPI_UNSIGNED_SHORT, short);
  PLAIN(MPI_INT, int);
  PLAIN(MPI_UNSIGNED, int);
  PLAIN(MPI_LONG, long);
  PLAIN(MPI_UNSIGNED_LONG, long);
  PLAIN(MPI_LONG_LONG, long long);
  PLAIN(MPI_UNSIGNED_LONG_LONG, long long);
  PLAIN(MPI_FLOAT, float);
  PLAIN(MPI_DOUBLE, double);
  PLAIN(MPI_LONG_DOUBLE, long double);
  PLAIN(MPI_C_BOOL, _Bool);
  PLAIN(MPI_INT8_T, int8_t);
  PLAIN(MPI_INT16_T, int16_t);
  PLAIN(MPI_INT32_T, int32_t);
  PLAIN(MPI_INT64_T, int64_t);
  PLAIN(MPI_UINT8_T, int8_t);
  PLAIN(MPI_UINT16_T, int16_t);
  PLAIN(MPI_UINT32_T, int32_t);
  PLAIN(MPI_UINT64_T, int64_t);
  PLAIN(MPI_C_FLOAT_COMPLEX, float complex);
  PLAIN(MPI_C_DOUBLE_COMPLEX, double complex);
  PLAIN(MPI_C_LONG_DOUBLE_COMPLEX, long double complex);
  PLAIN(MPI_AINT, MPI_Aint);
  PLAIN(MPI_OFFSET, MPI_Offset);
  PLAIN(MPI_COUNT, MPI_Count);
  PLAIN(MPI_PACKED, char);
  PLAIN(MPI_INTEGER, int);
  PLAIN(MPI_REAL, float);
  PLAIN(MPI_DOUBLE_PRECISION, double);
  PLAIN(MPI_LOGICAL, int);
  PLAIN(MPI_COMPLEX, float complex);
  PLAIN(MPI_DOUBLE_COMPLEX, double complex);
  PLAIN(MPI_CHARACTER, char);
  PLAIN(MPI_2INT, int[2]);
  PLAIN(MPI_FLOAT_INT, int[2]);
  BOUNDS(MPI_DOUBLE_INT, 12, 0, 16, 0, 12);
  BOUNDS(MPI_LONG_INT, 12, 0, 16, 0, 12);
  BOUNDS(MPI_SHORT_INT, 6, 0, 8, 0, 8);
  BOUNDS(MPI_LONG_DOUBLE_INT, 20, 0, 32, 0, 20);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  Predefined();
  MPI_Datatype t, u;
  MPI_Type_vector(3, 2, 5, MPI_INT, &t);
  BOUNDS(t, 24, 0, 48, 0, 48);
  MPI_Type_free(&t);
  MPI_Type_vector(3, 1, -4, MPI_INT, &t);
  BOUNDS(t, 12, -32, 36, -32, 36);
  MPI_Type_free(&t);
  MPI_Type_indexed(2, (int[]){1, 1}, (int[]){5, 2}, MPI_INT, &t);
  BOUNDS(t, 8, 8, 16, 8, 16);
  MPI_Type_create_resized(t, -4, 100, &u);
  BOUNDS(u, 8, -4, 100, 8, 16);
  MPI_Type_free(&t);
  MPI_Type_contiguous(3, u, &t);
  BOUNDS(t, 24, -4, 300, 8, 216);
  MPI_Type_free(&t);
  MPI_Type_free(&u);
  /* A struct is padded to its alignment. */
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_DOUBLE, MPI_CHAR}, &t);
  BOUNDS(t, 9, 0, 16, 0, 9);
  MPI_Type_free(&t);
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 1}, (MPI_Datatype[]){MPI_CHAR, MPI_CHAR}, &t);
  BOUNDS(t, 2, 0, 2, 0, 2);
  MPI_Type_free(&t);
  MPI_Type_create_subarray(2, (int[]){4, 5}, (int[]){2, 3}, (int[]){1, 1}, MPI_ORDER_C, MPI_INT, &t);
  BOUNDS(t, 24, 0, 80, 24, 32);
  MPI_Type_free(&t);
  MPI_Type_create_darray(4, 3, 2, (int[]){4, 4}, (int[]){MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK},
                         (int[]){MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, (int[]){2, 2}, MPI_ORDER_C, MPI_INT, &t);
  BOUNDS(t, 16, 0, 64, 40, 24);
  MPI_Type_free(&t);
  MPI_Type_contiguous(0, MPI_INT, &t);
  BOUNDS(t, 0, 0, 0, 0, 0);
  MPI_Type_free(&t);
  /* Zero-length blocks do not move the bounds. */
  MPI_Type_create_struct(3, (int[]){0, 1, 0}, (MPI_Aint[]){-100, 8, 500}, (MPI_Datatype[]){MPI_INT, MPI_INT, MPI_INT}, &t);
  BOUNDS(t, 4, 8, 4, 8, 4);
  MPI_Type_free(&t);
  int x[4];
  MPI_Aint first, last;
  MPI_Get_address(&x[0], &first);
  MPI_Get_address(&x[3], &last);
  CHECK_EQ(MPI_Aint_diff(last, first), 12);
  CHECK_EQ(MPI_Aint_add(first, 12), last);
  return End();
}
