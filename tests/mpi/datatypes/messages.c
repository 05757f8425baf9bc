/* Derived types in messages between ranks, small and large (both protocols), and the counts of incomplete ones; MPI_BOTTOM; types freed
 * while messages are under way. */
#include "tests/mpi/check.h"

/* A column of an n x n matrix of doubles becomes a row at the next rank. */
static void ColumnToRow(int n) {
  double *a = malloc(sizeof(double) * n * n), *b = malloc(sizeof(double) * n * n);
  MPI_Datatype column;
  MPI_Request requests[2];
  MPI_Type_vector(n, 1, n, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  for (int i = 0; i < n * n; i++) a[i] = world_rank * 1e6 + i, b[i] = -1;
  MPI_Isend(a + 1, 1, column, Right(), n, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(b + n, n, MPI_DOUBLE, Left(), n, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < n; i++) CHECK(b[n + i] == Left() * 1e6 + 1 + i * n);
  CHECK(b[n - 1] == -1 && b[2 * n] == -1);
  /* And back: a row becomes a column. The type is freed before the messages are through. */
  for (int i = 0; i < n * n; i++) b[i] = -1;
  MPI_Irecv(b + 2, 1, column, Right(), n + 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(a + n, n, MPI_DOUBLE, Left(), n + 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Type_free(&column);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < n * n; i++) CHECK(b[i] == (i % n == 2 ? Right() * 1e6 + n + i / n : -1));
  free(a);
  free(b);
}

/* Five ints into a type of three: Get_count is undefined, Get_elements five. */
static void IncompleteElements(void) {
  MPI_Datatype three, mixed;
  MPI_Status status;
  int out[6] = {1, 2, 3, 4, 5, 6}, in[9] = {0}, count;
  MPI_Count elements;
  MPI_Type_contiguous(3, MPI_INT, &three);
  MPI_Type_commit(&three);
  MPI_Sendrecv(out, 5, MPI_INT, Right(), 1, in, 3, three, Left(), 1, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, three, &count);
  CHECK_EQ(count, MPI_UNDEFINED);
  MPI_Get_elements(&status, three, &count);
  CHECK_EQ(count, 5);
  MPI_Get_elements_x(&status, three, &elements);
  CHECK_EQ(elements, 5);
  for (int i = 0; i < 9; i++) CHECK_EQ(in[i], i < 5 ? i + 1 : 0);
  MPI_Sendrecv(out, 6, MPI_INT, Right(), 1, in, 3, three, Left(), 1, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, three, &count);
  CHECK_EQ(count, 2);
  /* A struct of a char and an int: 1 + 4 + 1 bytes are three elements. */
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 4}, (MPI_Datatype[]){MPI_CHAR, MPI_INT}, &mixed);
  MPI_Type_commit(&mixed);
  MPI_Datatype one_and_a_half;
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){mixed, MPI_CHAR}, &one_and_a_half);
  MPI_Type_commit(&one_and_a_half);
  MPI_Sendrecv(out, 1, one_and_a_half, Right(), 2, in, 2, mixed, Left(), 2, MPI_COMM_WORLD, &status);
  MPI_Get_elements(&status, mixed, &count);
  CHECK_EQ(count, 3);
  MPI_Get_count(&status, mixed, &count);
  CHECK_EQ(count, MPI_UNDEFINED);
  MPI_Type_free(&three);
  MPI_Type_free(&mixed);
  MPI_Type_free(&one_and_a_half);
}

static void AbsoluteAddresses(void) {
  int a[2] = {world_rank, world_rank + 1}, x[2] = {-1, -1};
  double b = world_rank * 2.5, y = -1;
  MPI_Aint addresses[2];
  MPI_Datatype out, in;
  MPI_Get_address(a, &addresses[0]);
  MPI_Get_address(&b, &addresses[1]);
  MPI_Type_create_struct(2, (int[]){2, 1}, addresses, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &out);
  MPI_Get_address(x, &addresses[0]);
  MPI_Get_address(&y, &addresses[1]);
  MPI_Type_create_struct(2, (int[]){2, 1}, addresses, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &in);
  MPI_Type_commit(&out);
  MPI_Type_commit(&in);
  MPI_Sendrecv(MPI_BOTTOM, 1, out, Right(), 3, MPI_BOTTOM, 1, in, Left(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(x[0], Left());
  CHECK_EQ(x[1], Left() + 1);
  CHECK(y == Left() * 2.5);
  MPI_Bcast(MPI_BOTTOM, 1, world_rank == 0 ? out : in, 0, MPI_COMM_WORLD);
  if (world_rank != 0) CHECK(x[1] == 1 && y == 0);
  MPI_Type_free(&out);
  MPI_Type_free(&in);
}

/* A vector of 200,000 single ints with gaps: more pieces than one system call takes. */
static void ManyPieces(void) {
  enum { kPieces = 200000 };
  int *a = malloc(sizeof(int) * 2 * kPieces), *b = malloc(sizeof(int) * 2 * kPieces);
  MPI_Datatype type;
  MPI_Type_vector(kPieces, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < 2 * kPieces; i++) a[i] = world_rank * 7 + i, b[i] = -1;
  MPI_Sendrecv(a, 1, type, Right(), 4, b, 1, type, Left(), 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < 2 * kPieces; i++) CHECK_EQ(b[i], i % 2 == 0 ? Left() * 7 + i : -1);
  MPI_Type_free(&type);
  free(a);
  free(b);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  ColumnToRow(3);
  ColumnToRow(100);
  ColumnToRow(1000);
  IncompleteElements();
  AbsoluteAddresses();
  ManyPieces();
  return End();
}
