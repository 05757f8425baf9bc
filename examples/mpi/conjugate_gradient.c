/* conjugate_gradient [SIZE]: solves A x = b for the five-point Laplacian on a SIZE x SIZE grid, spread over the ranks by rows. Each step
 * exchanges edge rows with the neighbours (nonblocking messages, while the inner rows are computed) and adds up two scalar products
 * (MPI_Allreduce). b is made from a known x; the result is compared with it and with a serial solution.
 *
 *   mpicc -O2 conjugate_gradient.c -o conjugate_gradient -lm && mpiexec -n 4 ./conjugate_gradient 128
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows first ... first + rows of the grid. Vectors have a row of halo above and below. */
typedef struct {
  int size, first, rows, up, down;
  MPI_Comm comm;
} Grid;

static double* NewVector(const Grid* g) { return calloc((size_t)(g->rows + 2) * g->size, sizeof(double)); }
static double* RowOf(const Grid* g, double* v, int row) { return v + (size_t)(row + 1) * g->size; }

static double Dot(const Grid* g, double* a, double* b) {
  double sum = 0, all;
  for (int i = 0; i < g->rows * g->size; i++) sum += RowOf(g, a, 0)[i] * RowOf(g, b, 0)[i];
  MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, g->comm);
  return all;
}

static void MultiplyRow(const Grid* g, double* x, double* y, int r) {
  const double *here = RowOf(g, x, r), *above = here - g->size, *below = here + g->size;
  double* out = RowOf(g, y, r);
  for (int c = 0; c < g->size; c++) {
    out[c] = 4 * here[c] - above[c] - below[c] - (c > 0 ? here[c - 1] : 0) - (c + 1 < g->size ? here[c + 1] : 0);
  }
}

/* y = A x. */
static void Multiply(const Grid* g, double* x, double* y) {
  MPI_Request requests[4];
  MPI_Irecv(RowOf(g, x, -1), g->size, MPI_DOUBLE, g->up, 1, g->comm, &requests[0]);
  MPI_Irecv(RowOf(g, x, g->rows), g->size, MPI_DOUBLE, g->down, 0, g->comm, &requests[1]);
  MPI_Isend(RowOf(g, x, 0), g->size, MPI_DOUBLE, g->up, 0, g->comm, &requests[2]);
  MPI_Isend(RowOf(g, x, g->rows - 1), g->size, MPI_DOUBLE, g->down, 1, g->comm, &requests[3]);
  for (int r = 1; r + 1 < g->rows; r++) MultiplyRow(g, x, y, r);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  MultiplyRow(g, x, y, 0);
  if (g->rows > 1) MultiplyRow(g, x, y, g->rows - 1);
}

/* x = b / A; the number of steps. */
static int Solve(const Grid* g, double* b, double* x) {
  double *r = NewVector(g), *p = NewVector(g), *q = NewVector(g);
  const size_t n = (size_t)g->rows * g->size;
  memcpy(RowOf(g, r, 0), RowOf(g, b, 0), n * sizeof(double));
  memcpy(RowOf(g, p, 0), RowOf(g, b, 0), n * sizeof(double));
  double rho = Dot(g, r, r);
  const double enough = rho * 1e-20;
  int steps = 0;
  for (; rho > enough && steps < 10 * g->size; steps++) {
    Multiply(g, p, q);
    const double alpha = rho / Dot(g, p, q);
    for (size_t i = 0; i < n; i++) {
      RowOf(g, x, 0)[i] += alpha * RowOf(g, p, 0)[i];
      RowOf(g, r, 0)[i] -= alpha * RowOf(g, q, 0)[i];
    }
    const double next = Dot(g, r, r), beta = next / rho;
    rho = next;
    for (size_t i = 0; i < n; i++) RowOf(g, p, 0)[i] = RowOf(g, r, 0)[i] + beta * RowOf(g, p, 0)[i];
  }
  free(r), free(p), free(q);
  return steps;
}

static double Known(int row, int column) { return sin(row * 0.1) * cos(column * 0.2) + 1; }

/* Makes b from the known solution, solves, and gives the largest distance from it; the solution in *x. */
static double SolveKnown(const Grid* g, double** x, int* steps) {
  double *known = NewVector(g), *b = NewVector(g), worst = 0, all;
  for (int i = 0; i < g->rows * g->size; i++) RowOf(g, known, 0)[i] = Known(g->first + i / g->size, i % g->size);
  Multiply(g, known, b);
  *x = NewVector(g);
  *steps = Solve(g, b, *x);
  for (int i = 0; i < g->rows * g->size; i++) worst = fmax(worst, fabs(RowOf(g, *x, 0)[i] - RowOf(g, known, 0)[i]));
  MPI_Allreduce(&worst, &all, 1, MPI_DOUBLE, MPI_MAX, g->comm);
  free(known), free(b);
  return all;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks, steps, serial_steps;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int size = argc > 1 ? atoi(argv[1]) : 128;
  if (size < ranks) {
    if (rank == 0) fprintf(stderr, "conjugate_gradient: a grid of %d rows does not go over %d ranks\n", size, ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int first = (int)((long)size * rank / ranks), end = (int)((long)size * (rank + 1) / ranks);
  const Grid grid = {size, first, end - first, rank > 0 ? rank - 1 : MPI_PROC_NULL, rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL,
                     MPI_COMM_WORLD};
  double *x, *serial;
  const double start = MPI_Wtime(), error = SolveKnown(&grid, &x, &steps), seconds = MPI_Wtime() - start;

  /* The same alone. Sums over ranks are rounded in another order, so the solutions agree to rounding errors. */
  const Grid alone = {size, 0, size, MPI_PROC_NULL, MPI_PROC_NULL, MPI_COMM_SELF};
  SolveKnown(&alone, &serial, &serial_steps);
  double worst = 0, all_worst;
  for (int i = 0; i < grid.rows * size; i++) worst = fmax(worst, fabs(RowOf(&grid, x, 0)[i] - RowOf(&alone, serial, first)[i]));
  MPI_Allreduce(&worst, &all_worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  const int ok = error < 1e-6 && all_worst < 1e-6 && abs(steps - serial_steps) <= 2;
  if (rank == 0) {
    printf("conjugate_gradient: %d x %d on %d ranks, %d steps (alone %d) in %.3f s; off the solution by %.1e, the serial one by %.1e: %s\n", size,
           size, ranks, steps, serial_steps, seconds, error, all_worst, ok ? "good" : "NOT good");
  }
  free(x), free(serial);
  MPI_Finalize();
  return ok ? 0 : 1;
}
