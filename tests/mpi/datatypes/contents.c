/* Taking types apart (MPI 4.0 section 5.1.13): envelope and contents give back what the constructors were given. */
#include "tests/mpi/check.h"

static int integers[64], n_integers, n_addresses, n_types, combiner;
static MPI_Aint addresses[64];
static MPI_Datatype types[8];

static void Look(MPI_Datatype type, int wanted, int want_integers, int want_addresses, int want_types) {
  MPI_Type_get_envelope(type, &n_integers, &n_addresses, &n_types, &combiner);
  CHECK_EQ(combiner, wanted);
  CHECK_EQ(n_integers, want_integers);
  CHECK_EQ(n_addresses, want_addresses);
  CHECK_EQ(n_types, want_types);
  if (wanted == MPI_COMBINER_NAMED) return;
  MPI_Type_get_contents(type, n_integers, n_addresses, n_types, integers, addresses, types);
}
#define INTEGERS(...)                                                                                             \
  do {                                                                                                            \
    const int given_[] = {__VA_ARGS__};                                                                        \
    for (unsigned at_ = 0; at_ < sizeof given_ / sizeof *given_; at_++) \
      CHECK_EQ(integers[at_], given_[at_]); \
  } while (0)

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Datatype t, inner;
  Look(MPI_INT, MPI_COMBINER_NAMED, 0, 0, 0);
  Look(MPI_FLOAT_INT, MPI_COMBINER_NAMED, 0, 0, 0);

  MPI_Type_contiguous(7, MPI_FLOAT, &t);
  Look(t, MPI_COMBINER_CONTIGUOUS, 1, 0, 1);
  INTEGERS(7);
  CHECK_EQ(types[0], MPI_FLOAT);
  MPI_Type_free(&t);

  MPI_Type_vector(3, 2, -5, MPI_INT, &t);
  Look(t, MPI_COMBINER_VECTOR, 3, 0, 1);
  INTEGERS(3, 2, -5);
  MPI_Type_free(&t);

  MPI_Type_create_hvector(3, 2, 1000, MPI_INT, &t);
  Look(t, MPI_COMBINER_HVECTOR, 2, 1, 1);
  INTEGERS(3, 2);
  CHECK_EQ(addresses[0], 1000);
  MPI_Type_free(&t);

  MPI_Type_indexed(2, (int[]){4, 5}, (int[]){60, 7}, MPI_INT, &t);
  Look(t, MPI_COMBINER_INDEXED, 5, 0, 1);
  INTEGERS(2, 4, 5, 60, 7);
  MPI_Type_free(&t);

  MPI_Type_create_hindexed(2, (int[]){4, 5}, (MPI_Aint[]){600, 8}, MPI_INT, &t);
  Look(t, MPI_COMBINER_HINDEXED, 3, 2, 1);
  INTEGERS(2, 4, 5);
  CHECK_EQ(addresses[0], 600);
  CHECK_EQ(addresses[1], 8);
  MPI_Type_free(&t);

  MPI_Type_create_indexed_block(3, 2, (int[]){6, 0, 3}, MPI_INT, &t);
  Look(t, MPI_COMBINER_INDEXED_BLOCK, 5, 0, 1);
  INTEGERS(3, 2, 6, 0, 3);
  MPI_Type_free(&t);

  MPI_Type_create_hindexed_block(2, 9, (MPI_Aint[]){8, 80}, MPI_INT, &t);
  Look(t, MPI_COMBINER_HINDEXED_BLOCK, 2, 2, 1);
  INTEGERS(2, 9);
  CHECK_EQ(addresses[1], 80);
  MPI_Type_free(&t);

  MPI_Type_contiguous(2, MPI_SHORT, &inner);
  MPI_Type_create_struct(2, (int[]){1, 3}, (MPI_Aint[]){16, 64}, (MPI_Datatype[]){MPI_CHAR, inner}, &t);
  MPI_Type_free(&inner);
  Look(t, MPI_COMBINER_STRUCT, 3, 2, 2);
  INTEGERS(2, 1, 3);
  CHECK_EQ(addresses[1], 64);
  CHECK_EQ(types[0], MPI_CHAR);
  MPI_Type_free(&t);
  inner = types[1];  /* ours now: it outlives the struct */
  Look(inner, MPI_COMBINER_CONTIGUOUS, 1, 0, 1);
  INTEGERS(2);
  CHECK_EQ(types[0], MPI_SHORT);
  MPI_Type_free(&inner);

  MPI_Type_create_resized(MPI_INT, -8, 40, &t);
  Look(t, MPI_COMBINER_RESIZED, 0, 2, 1);
  CHECK_EQ(addresses[0], -8);
  CHECK_EQ(addresses[1], 40);
  MPI_Type_free(&t);

  MPI_Type_dup(MPI_DOUBLE, &t);
  Look(t, MPI_COMBINER_DUP, 0, 0, 1);
  CHECK_EQ(types[0], MPI_DOUBLE);
  MPI_Type_free(&t);

  MPI_Type_create_subarray(2, (int[]){4, 5}, (int[]){2, 3}, (int[]){1, 0}, MPI_ORDER_FORTRAN, MPI_INT, &t);
  Look(t, MPI_COMBINER_SUBARRAY, 8, 0, 1);
  INTEGERS(2, 4, 5, 2, 3, 1, 0, MPI_ORDER_FORTRAN);
  MPI_Type_free(&t);

  MPI_Type_create_darray(4, 2, 2, (int[]){8, 9}, (int[]){MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
                         (int[]){MPI_DISTRIBUTE_DFLT_DARG, 3}, (int[]){2, 2}, MPI_ORDER_C, MPI_INT, &t);
  Look(t, MPI_COMBINER_DARRAY, 12, 0, 1);
  INTEGERS(4, 2, 2, 8, 9, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_DFLT_DARG, 3, 2, 2, MPI_ORDER_C);
  MPI_Type_free(&t);

  MPI_Type_create_f90_real(6, MPI_UNDEFINED, &t);
  Look(t, MPI_COMBINER_F90_REAL, 2, 0, 0);
  INTEGERS(6, MPI_UNDEFINED);
  MPI_Type_create_f90_integer(9, &t);
  Look(t, MPI_COMBINER_F90_INTEGER, 1, 0, 0);
  INTEGERS(9);
  int size;
  MPI_Type_size(t, &size);
  CHECK_EQ(size, 4);
  MPI_Type_create_f90_complex(15, 300, &t);
  MPI_Type_size(t, &size);
  CHECK_EQ(size, 16);
  MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t);
  MPI_Type_size(t, &size);
  CHECK_EQ(size, 8);
  return End();
}
