/* transpose [SIZE]: a square matrix, spread over the ranks by rows, is transposed with one MPI_Alltoall. A derived type takes the
 * columns of a block out, so that nothing is copied by hand: row r of the block that rank s gets is column r of ours.
 *
 *   mpicc -O2 transpose.c -o transpose && mpiexec -n 4 ./transpose 1024
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double Element(int row, int column) { return row * 1e5 + column; }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int wanted = argc > 1 ? atoi(argv[1]) : 1024, block = (wanted + ranks - 1) / ranks, size = block * ranks;
  double *a = malloc(sizeof(double) * block * size), *b = malloc(sizeof(double) * block * size);
  for (int r = 0; r < block; r++) {
    for (int c = 0; c < size; c++) a[(size_t)r * size + c] = Element(rank * block + r, c);
  }

  /* What goes to rank s: the columns s*block ... of our rows, column by column. One column is a vector with the stride of a row; the next
   * one starts one element further, which resizing says; `block` of them make a block, and the next rank's starts `block` elements on. */
  MPI_Datatype strided, column, columns, to_one;
  MPI_Type_vector(block, 1, size, MPI_DOUBLE, &strided);
  MPI_Type_create_resized(strided, 0, sizeof(double), &column);
  MPI_Type_contiguous(block, column, &columns);
  MPI_Type_create_resized(columns, 0, block * (MPI_Aint)sizeof(double), &to_one);
  MPI_Type_commit(&to_one);
  /* What comes from rank s: rows of `block` elements, which stand in columns s*block ... of our new rows. */
  MPI_Datatype rows, from_one;
  MPI_Type_vector(block, block, size, MPI_DOUBLE, &rows);
  MPI_Type_create_resized(rows, 0, block * (MPI_Aint)sizeof(double), &from_one);
  MPI_Type_commit(&from_one);

  const double start = MPI_Wtime();
  MPI_Alltoall(a, 1, to_one, b, 1, from_one, MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - start;

  long wrong = 0, all_wrong = 0;
  for (int r = 0; r < block; r++) {
    for (int c = 0; c < size; c++) wrong += b[(size_t)r * size + c] != Element(c, rank * block + r);
  }
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("transpose: %d x %d on %d ranks in %.3f ms; %ld elements are wrong\n", size, size, ranks, seconds * 1e3, all_wrong);
  MPI_Type_free(&strided), MPI_Type_free(&column), MPI_Type_free(&columns), MPI_Type_free(&to_one);
  MPI_Type_free(&rows), MPI_Type_free(&from_one);
  free(a);
  free(b);
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
