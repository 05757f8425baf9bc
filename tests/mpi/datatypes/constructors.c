/* Every type constructor (MPI 4.0 section 5.1): what is sent with the type arrives as the plain elements that it selects, in order, and
 * plain elements that are received with it land in those places and nowhere else. */
#include "tests/mpi/check.h"

enum { kInts = 4096 };

/* Sends `count` of `type` from numbered ints to this rank as MPI_INT and checks them against places[0..n); then the way back. */
static void Check(int line, MPI_Datatype type, int count, const int* places, int n) {
  static int from[kInts], plain[kInts], into[kInts];
  MPI_Status status;
  int received, before = failures;
  for (int i = 0; i < kInts; i++) from[i] = i, plain[i] = -1;
  MPI_Type_commit(&type);
  MPI_Sendrecv(from, count, type, world_rank, 1, plain, kInts, MPI_INT, world_rank, 1, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_INT, &received);
  CHECK_EQ(received, n);
  for (int i = 0; i < n; i++) CHECK_EQ(plain[i], places[i]);
  for (int i = 0; i < kInts; i++) plain[i] = 5000 + i, into[i] = from[i] = -1;
  MPI_Sendrecv(plain, n, MPI_INT, world_rank, 2, into, count, type, world_rank, 2, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, type, &received);
  CHECK_EQ(received, count);
  for (int i = 0; i < n; i++) from[places[i]] = 5000 + i;
  for (int i = 0; i < kInts; i++) CHECK_EQ(into[i], from[i]);
  int size, position = 0;
  MPI_Type_size(type, &size);
  CHECK_EQ(size * count, n * (int)sizeof(int));
  /* Packed and unpacked, the same. */
  for (int i = 0; i < kInts; i++) from[i] = i;
  MPI_Pack(from, count, type, plain, sizeof plain, &position, MPI_COMM_SELF);
  CHECK_EQ(position, n * (int)sizeof(int));
  for (int i = 0; i < n; i++) CHECK_EQ(plain[i], places[i]);
  if (failures > before) fprintf(stderr, "  ... of the type in line %d\n", line);
  MPI_Type_free(&type);
}
#define TYPE(type, count, ...)                                     \
  do {                                                             \
    const int places[] = {__VA_ARGS__};                            \
    Check(__LINE__, type, count, places, sizeof places / sizeof *places); \
  } while (0)

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Datatype t, u, v;
  const MPI_Aint s = sizeof(int);

  MPI_Type_contiguous(3, MPI_INT, &t);
  TYPE(t, 2, 0, 1, 2, 3, 4, 5);

  MPI_Type_vector(3, 2, 5, MPI_INT, &t);
  TYPE(t, 1, 0, 1, 5, 6, 10, 11);
  MPI_Type_vector(3, 2, 5, MPI_INT, &t);  /* the second starts at the extent: 12 ints */
  TYPE(t, 2, 0, 1, 5, 6, 10, 11, 12, 13, 17, 18, 22, 23);
  MPI_Type_vector(3, 1, 0, MPI_INT, &t);
  MPI_Type_free(&t);

  MPI_Type_create_hvector(3, 1, 7 * s, MPI_INT, &t);
  TYPE(t, 1, 0, 7, 14);

  MPI_Type_indexed(3, (int[]){2, 0, 1}, (int[]){4, 9, 1}, MPI_INT, &t);
  TYPE(t, 1, 4, 5, 1);

  MPI_Type_create_hindexed(2, (int[]){1, 2}, (MPI_Aint[]){9 * s, 3 * s}, MPI_INT, &t);
  TYPE(t, 1, 9, 3, 4);

  MPI_Type_create_indexed_block(3, 2, (int[]){6, 0, 3}, MPI_INT, &t);
  TYPE(t, 1, 6, 7, 0, 1, 3, 4);

  MPI_Type_create_hindexed_block(2, 2, (MPI_Aint[]){8 * s, 2 * s}, MPI_INT, &t);
  TYPE(t, 1, 8, 9, 2, 3);

  MPI_Type_contiguous(2, MPI_INT, &u);
  MPI_Type_create_struct(3, (int[]){1, 2, 1}, (MPI_Aint[]){2 * s, 5 * s, 0}, (MPI_Datatype[]){MPI_INT, u, MPI_INT}, &t);
  MPI_Type_free(&u);  /* the struct keeps what it needs */
  TYPE(t, 1, 2, 5, 6, 7, 8, 0);

  MPI_Type_create_resized(MPI_INT, 0, 3 * s, &t);
  TYPE(t, 4, 0, 3, 6, 9);

  /* A negative lower bound and a negative stride. */
  MPI_Type_vector(3, 1, -2, MPI_INT, &u);
  MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){4 * s}, u, &t);
  MPI_Type_free(&u);
  TYPE(t, 1, 4, 2, 0);

  MPI_Type_create_subarray(2, (int[]){4, 5}, (int[]){2, 3}, (int[]){1, 1}, MPI_ORDER_C, MPI_INT, &t);
  TYPE(t, 1, 6, 7, 8, 11, 12, 13);
  MPI_Type_create_subarray(2, (int[]){4, 5}, (int[]){2, 3}, (int[]){1, 1}, MPI_ORDER_FORTRAN, MPI_INT, &t);
  TYPE(t, 1, 5, 6, 9, 10, 13, 14);
  MPI_Type_create_subarray(3, (int[]){3, 3, 3}, (int[]){2, 1, 2}, (int[]){1, 2, 0}, MPI_ORDER_C, MPI_INT, &t);
  TYPE(t, 2, 15, 16, 24, 25, 42, 43, 51, 52);

  /* Distributed arrays: block, cyclic, cyclic(2) over a 2 x 2 grid of processes. */
  MPI_Type_create_darray(4, 1, 2, (int[]){4, 4}, (int[]){MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK},
                         (int[]){MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, (int[]){2, 2}, MPI_ORDER_C, MPI_INT, &t);
  TYPE(t, 1, 2, 3, 6, 7);
  MPI_Type_create_darray(4, 2, 2, (int[]){4, 6}, (int[]){MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC}, (int[]){1, 2}, (int[]){2, 2},
                         MPI_ORDER_C, MPI_INT, &t);
  TYPE(t, 1, 6, 7, 10, 11, 18, 19, 22, 23);
  MPI_Type_create_darray(2, 1, 1, (int[]){7}, (int[]){MPI_DISTRIBUTE_CYCLIC}, (int[]){2}, (int[]){2}, MPI_ORDER_FORTRAN, MPI_INT, &t);
  TYPE(t, 1, 2, 3, 6);

  /* Types of types: every second column of a 4 x 6 matrix, as a vector of resized vectors. */
  MPI_Type_vector(4, 1, 6, MPI_INT, &u);
  MPI_Type_create_resized(u, 0, 2 * s, &v);
  MPI_Type_contiguous(3, v, &t);
  MPI_Type_free(&u);
  MPI_Type_free(&v);
  TYPE(t, 1, 0, 6, 12, 18, 2, 8, 14, 20, 4, 10, 16, 22);

  MPI_Type_vector(2, 1, 2, MPI_INT, &u);
  MPI_Type_dup(u, &t);
  MPI_Type_free(&u);
  TYPE(t, 1, 0, 2);

  /* Nothing at all. */
  int size;
  MPI_Type_contiguous(0, MPI_INT, &t);
  MPI_Type_commit(&t);
  MPI_Type_size(t, &size);
  CHECK_EQ(size, 0);
  MPI_Sendrecv(NULL, 5, t, world_rank, 0, NULL, 0, MPI_INT, world_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Type_free(&t);
  CHECK_EQ(t, MPI_DATATYPE_NULL);
  return End();
}
