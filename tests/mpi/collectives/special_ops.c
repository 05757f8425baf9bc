/* MAXLOC, MINLOC and complex numbers; user-defined operations, commutative or not, on derived types; MPI_Reduce_local. */
#include <complex.h>

#include "tests/mpi/check.h"

#define LOC(type, mpi_type)                                                                                   \
  do {                                                                                                        \
    struct {                                                                                                  \
      type value;                                                                                             \
      int where;                                                                                              \
    } in[3] = {{(type)(world_rank % 3), world_rank}, {(type)7, world_rank}, {(type)(10 - world_rank % 2), world_rank}}, out[3]; \
    MPI_Allreduce(in, out, 3, mpi_type, MPI_MAXLOC, MPI_COMM_WORLD);                                          \
    CHECK(out[0].value == (type)(world_size > 2 ? 2 : world_size - 1));                                       \
    CHECK_EQ(out[0].where, world_size > 2 ? 2 : world_size - 1);                                              \
    CHECK_EQ(out[1].where, 0); /* the lowest of equals */                                                     \
    CHECK_EQ(out[2].where, 0);                                                                                \
    MPI_Allreduce(in, out, 3, mpi_type, MPI_MINLOC, MPI_COMM_WORLD);                                          \
    CHECK_EQ(out[0].where, 0);                                                                                \
    CHECK_EQ(out[1].where, 0);                                                                                \
    CHECK_EQ(out[2].where, world_size > 1 ? 1 : 0);                                                           \
    CHECK(out[2].value == (type)(world_size > 1 ? 9 : 10));                                                   \
  } while (0)

/* Composition of the maps x -> ax + b modulo 10007: associative, not commutative. */
typedef struct {
  int a, b;
} Affine;

static void Compose(void* in, void* inout, int* count, MPI_Datatype* type) {
  const Affine* first = in;
  Affine* second = inout;
  (void)type;
  for (int i = 0; i < *count; i++) {
    const Affine f = first[i], s = second[i];
    second[i].a = f.a * s.a % 10007;
    second[i].b = (f.b * s.a + s.b) % 10007;
  }
}

static Affine Map(int rank, int i) { return (Affine){2 + (rank * 7 + i) % 90, 1 + (rank * 5 + i * 3) % 80}; }

static Affine Composed(int n, int i) {
  Affine all = Map(0, i);
  for (int r = 1; r < n; r++) {
    Affine next = Map(r, i);
    const int one = 1;
    Compose(&all, &next, (int*)&one, NULL);
    all = next;
  }
  return all;
}

static void NonCommutative(int count) {
  MPI_Datatype type;
  MPI_Op op;
  int commutes;
  MPI_Type_contiguous(2, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Op_create(Compose, 0, &op);
  MPI_Op_commutative(op, &commutes);
  CHECK_EQ(commutes, 0);
  Affine *in = malloc((count + 1) * sizeof *in), *out = malloc((count + 1) * sizeof *out);
  for (int i = 0; i < count; i++) in[i] = Map(world_rank, i);
#define EXPECT(n, offset, many)                                 \
  for (int i = 0; i < (many); i++) {                            \
    CHECK_EQ(out[i].a, Composed(n, (offset) + i).a);            \
    CHECK_EQ(out[i].b, Composed(n, (offset) + i).b);            \
  }
  for (int root = 0; root < world_size; root++) {
    MPI_Reduce(in, out, count, type, op, root, MPI_COMM_WORLD);
    if (world_rank == root) EXPECT(world_size, 0, count);
  }
  MPI_Allreduce(in, out, count, type, op, MPI_COMM_WORLD);
  EXPECT(world_size, 0, count);
  MPI_Scan(in, out, count, type, op, MPI_COMM_WORLD);
  EXPECT(world_rank + 1, 0, count);
  MPI_Exscan(in, out, count, type, op, MPI_COMM_WORLD);
  if (world_rank > 0) EXPECT(world_rank, 0, count);
  const int part = count / world_size;
  MPI_Reduce_scatter_block(in, out, part, type, op, MPI_COMM_WORLD);
  EXPECT(world_size, part * world_rank, part);
  free(in);
  free(out);
  MPI_Op_free(&op);
  CHECK_EQ(op, MPI_OP_NULL);
  MPI_Type_free(&type);
}

/* The user's function sees the type that the call was made with, also one with gaps, and leaves the gaps alone. */
static MPI_Datatype seen_type;
static void AddEverySecond(void* in, void* inout, int* count, MPI_Datatype* type) {
  seen_type = *type;
  for (int i = 0; i < *count; i++) {
    for (int j = 0; j < 3; j++) ((int*)inout)[i * 6 + j * 2] += ((int*)in)[i * 6 + j * 2];
  }
}

static void OpOnTypeWithGaps(void) {
  MPI_Datatype gaps, type;
  MPI_Op op;
  MPI_Type_vector(3, 1, 2, MPI_INT, &gaps);
  MPI_Type_create_resized(gaps, 0, 6 * sizeof(int), &type);
  MPI_Type_commit(&type);
  MPI_Op_create(AddEverySecond, 1, &op);
  int in[120], out[120];
  for (int i = 0; i < 120; i++) in[i] = world_rank + i, out[i] = -9;
  MPI_Allreduce(in, out, 20, type, op, MPI_COMM_WORLD);
  for (int i = 0; i < 120; i++) CHECK_EQ(out[i], i % 2 == 1 ? -9 : world_size * i + world_size * (world_size - 1) / 2);
  int calls = 0, all_calls = 0;
  if (seen_type != 0) {
    CHECK_EQ(seen_type, type);
    calls = 1;
  }
  MPI_Allreduce(&calls, &all_calls, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(world_size == 1 || all_calls > 0);
  MPI_Op_free(&op);
  MPI_Type_free(&gaps);
  MPI_Type_free(&type);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  LOC(float, MPI_FLOAT_INT);
  LOC(double, MPI_DOUBLE_INT);
  LOC(long, MPI_LONG_INT);
  LOC(short, MPI_SHORT_INT);
  LOC(int, MPI_2INT);
  LOC(long double, MPI_LONG_DOUBLE_INT);
  double complex z = 1 + world_rank * I, sum, product, expected = 1;
  MPI_Allreduce(&z, &sum, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&z, &product, 1, MPI_C_DOUBLE_COMPLEX, MPI_PROD, MPI_COMM_WORLD);
  for (int r = 1; r < world_size; r++) expected *= 1 + r * I;
  CHECK_NEAR(creal(sum), world_size, 0);
  CHECK_NEAR(cimag(sum), world_size * (world_size - 1) / 2, 0);
  CHECK_NEAR(creal(product), creal(expected), 1e-9);
  CHECK_NEAR(cimag(product), cimag(expected), 1e-9);
  NonCommutative(1);
  NonCommutative(17);
  NonCommutative(5000);
  OpOnTypeWithGaps();
  int a[3] = {1, 2, 3}, b[3] = {10, 20, 30};
  MPI_Reduce_local(a, b, 3, MPI_INT, MPI_SUM);
  CHECK_EQ(b[0] + b[1] * 100 + b[2] * 10000, 11 + 2200 + 330000);
  Affine f = Map(0, 0), g = Map(1, 0);
  MPI_Op op;
  MPI_Op_create(Compose, 0, &op);
  MPI_Reduce_local(&f, &g, 1, MPI_2INT, op);
  CHECK_EQ(g.a, Composed(2, 0).a);
  CHECK_EQ(g.b, Composed(2, 0).b);
  MPI_Op_free(&op);
  int commutes = 0;
  MPI_Op_commutative(MPI_SUM, &commutes);
  CHECK(commutes);
  return End();
}
