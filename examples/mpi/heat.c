/* heat [SIZE [STEPS [PICTURE.pgm]]]: heat spreads over a square plate. One-sided: each step, every rank puts its edge rows and columns
 * into its neighbours' halos between two fences. At the end the field is compared with a serial computation and, if a file is named,
 * written as a grey picture.
 *
 *   mpicc -O2 heat.c -o heat && mpiexec -n 4 ./heat 256 500 heat.pgm
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Our part of the plate: rows x columns places inside a border one place wide, which holds the neighbours' edges or the plate's rim. */
typedef struct {
  int rows, columns, first_row, first_column;
  double* now;   /* in the window */
  double* next;
} Part;

static double* At(const Part* part, double* field, int row, int column) { return field + row * (part->columns + 2) + column; }

/* The rim is cold; one side is hot, and there is a hot spot. */
static double Start(int size, int row, int column) {
  if (row < 0) return 100;
  if (row >= size || column < 0 || column >= size) return 0;
  const int from_spot = abs(row - size * 2 / 3) + abs(column - size / 3);
  return from_spot < size / 8 ? 200 : 0;
}

static void Step(const Part* part) {
  for (int r = 1; r <= part->rows; r++) {
    for (int c = 1; c <= part->columns; c++) {
      const double* p = At(part, part->now, r, c);
      *At(part, part->next, r, c) = p[0] + 0.2 * (p[-1] + p[1] + p[-(part->columns + 2)] + p[part->columns + 2] - 4 * p[0]);
    }
  }
  for (int r = 1; r <= part->rows; r++) {
    memcpy(At(part, part->now, r, 1), At(part, part->next, r, 1), sizeof(double) * part->columns);
  }
}

static void Fill(const Part* part, int size) {
  for (int r = 0; r < part->rows + 2; r++) {
    for (int c = 0; c < part->columns + 2; c++) {
      *At(part, part->now, r, c) = Start(size, part->first_row + r - 1, part->first_column + c - 1);
    }
  }
}

/* Rows and columns of `size` that belong to place `index` of `places`. */
static void Share(int size, int places, int index, int* first, int* count) {
  *first = (int)((long)size * index / places);
  *count = (int)((long)size * (index + 1) / places) - *first;
}

/* What one step of communication needs: for each of the four neighbours which of our places go where in its window. */
typedef struct {
  int rank;              /* or MPI_PROC_NULL at the plate's rim */
  double* edge;
  MPI_Aint place;        /* in the neighbour's window, in doubles */
  MPI_Datatype here, there;
} Halo;

static MPI_Datatype Column(int rows, int columns) {
  MPI_Datatype type;
  MPI_Type_vector(rows, 1, columns + 2, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

static MPI_Datatype Row(int columns) {
  MPI_Datatype type;
  MPI_Type_contiguous(columns, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

/* Neighbours in a row of the grid have as many rows as we, but perhaps another number of columns, and so another stride. */
static void MakeHalos(const Part* part, MPI_Comm grid, const int dims[2], const int at[2], int size, Halo halos[4]) {
  int up, down, left, right, first, above, left_columns, right_columns;
  MPI_Cart_shift(grid, 0, 1, &up, &down);
  MPI_Cart_shift(grid, 1, 1, &left, &right);
  const int stride = part->columns + 2;
  Share(size, dims[0], at[0] > 0 ? at[0] - 1 : 0, &first, &above);
  Share(size, dims[1], at[1] > 0 ? at[1] - 1 : 0, &first, &left_columns);
  Share(size, dims[1], at[1] + 1 < dims[1] ? at[1] + 1 : at[1], &first, &right_columns);
  halos[0] = (Halo){up, At(part, part->now, 1, 1), (MPI_Aint)(above + 1) * stride + 1, Row(part->columns), Row(part->columns)};
  halos[1] = (Halo){down, At(part, part->now, part->rows, 1), 1, Row(part->columns), Row(part->columns)};
  halos[2] = (Halo){left, At(part, part->now, 1, 1), left_columns + 2 + left_columns + 1, Column(part->rows, part->columns),
                    Column(part->rows, left_columns)};
  halos[3] = (Halo){right, At(part, part->now, 1, part->columns), right_columns + 2, Column(part->rows, part->columns),
                    Column(part->rows, right_columns)};
}

/* The whole field at rank 0, row by row. */
static double* Collect(const Part* part, MPI_Comm grid, int size) {
  int rank, ranks;
  MPI_Comm_rank(grid, &rank);
  MPI_Comm_size(grid, &ranks);
  int mine[4] = {part->first_row, part->first_column, part->rows, part->columns};
  double* packed = malloc(sizeof(double) * part->rows * part->columns);
  for (int r = 0; r < part->rows; r++) {
    memcpy(packed + r * part->columns, At(part, part->now, r + 1, 1), sizeof(double) * part->columns);
  }
  if (rank != 0) {
    MPI_Send(mine, 4, MPI_INT, 0, 0, grid);
    MPI_Send(packed, part->rows * part->columns, MPI_DOUBLE, 0, 1, grid);
    free(packed);
    return NULL;
  }
  double* field = malloc(sizeof(double) * size * size);
  for (int from = 0; from < ranks; from++) {
    if (from > 0) {
      MPI_Recv(mine, 4, MPI_INT, from, 0, grid, MPI_STATUS_IGNORE);
      packed = realloc(packed, sizeof(double) * mine[2] * mine[3]);
      MPI_Recv(packed, mine[2] * mine[3], MPI_DOUBLE, from, 1, grid, MPI_STATUS_IGNORE);
    }
    for (int r = 0; r < mine[2]; r++) {
      memcpy(field + (size_t)(mine[0] + r) * size + mine[1], packed + r * mine[3], sizeof(double) * mine[3]);
    }
  }
  free(packed);
  return field;
}

/* The places where the field differs from what one process computes alone: none, to the last bit. */
static long CompareWithSerial(const double* field, int size, int steps) {
  Part all = {size, size, 0, 0, calloc((size_t)(size + 2) * (size + 2), sizeof(double)), calloc((size_t)(size + 2) * (size + 2), sizeof(double))};
  long different = 0;
  Fill(&all, size);
  for (int i = 0; i < steps; i++) Step(&all);
  for (int r = 0; r < size; r++) {
    for (int c = 0; c < size; c++) different += field[(size_t)r * size + c] != *At(&all, all.now, r + 1, c + 1);
  }
  free(all.now);
  free(all.next);
  return different;
}

static int WritePicture(const char* path, const double* field, int size) {
  FILE* file = fopen(path, "wb");
  if (file == NULL) {
    perror(path);
    return 0;
  }
  fprintf(file, "P5\n%d %d\n255\n", size, size);
  for (int i = 0; i < size * size; i++) fputc(field[i] < 0 ? 0 : field[i] > 127.5 ? 255 : (int)(field[i] * 2), file);
  if (fclose(file) != 0) {
    perror(path);
    return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int size = argc > 1 ? atoi(argv[1]) : 256, steps = argc > 2 ? atoi(argv[2]) : 500;
  int ranks, rank, dims[2] = {0, 0}, at[2];
  MPI_Comm grid;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Dims_create(ranks, 2, dims);
  if (size < dims[0] || steps < 0) {
    fprintf(stderr, "heat: a plate of %d for %d steps on %d x %d ranks cannot be\n", size, steps, dims[0], dims[1]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, (int[]){0, 0}, 0, &grid);
  MPI_Comm_rank(grid, &rank);
  MPI_Cart_coords(grid, rank, 2, at);

  /* 1. Our part, in memory that others may write into. */
  Part part;
  MPI_Win win;
  Share(size, dims[0], at[0], &part.first_row, &part.rows);
  Share(size, dims[1], at[1], &part.first_column, &part.columns);
  const size_t bytes = sizeof(double) * (part.rows + 2) * (part.columns + 2);
  MPI_Win_allocate((MPI_Aint)bytes, sizeof(double), MPI_INFO_NULL, grid, &part.now, &win);
  part.next = malloc(bytes);
  Fill(&part, size);
  Halo halos[4];
  MakeHalos(&part, grid, dims, at, size, halos);

  /* 2. Steps. The first fence says that our edges are ready to be read, the second that the neighbours' have arrived in our halo. */
  const double start = MPI_Wtime();
  for (int i = 0; i < steps; i++) {
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    for (int k = 0; k < 4; k++) {
      MPI_Put(halos[k].edge, 1, halos[k].here, halos[k].rank, halos[k].place, 1, halos[k].there, win);
    }
    MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED, win);
    Step(&part);
  }
  const double seconds = MPI_Wtime() - start;

  /* 3. Check and show. */
  int ok = 1;
  double* field = Collect(&part, grid, size);
  if (rank == 0) {
    const long different = CompareWithSerial(field, size, steps);
    printf("heat: %d x %d places on %d x %d ranks, %d steps in %.3f s; %ld places differ from the serial result\n", size, size, dims[0],
           dims[1], steps, seconds, different);
    ok = different == 0 && (argc < 4 || WritePicture(argv[3], field, size));
  }
  free(field);
  for (int k = 0; k < 4; k++) {
    MPI_Type_free(&halos[k].here);
    MPI_Type_free(&halos[k].there);
  }
  free(part.next);
  MPI_Win_free(&win);
  MPI_Comm_free(&grid);
  MPI_Finalize();
  return ok ? 0 : 1;
}
