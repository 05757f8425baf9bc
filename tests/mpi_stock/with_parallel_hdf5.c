/* Parallel HDF5: one file of all ranks, by collective and independent hyperslabs, contiguous and in chunks, with attributes; HDF5 sets
 * views of types that it made of the selections. Prints how many values were wrong. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MUST(call)                                                        \
  do {                                                                    \
    if ((call) < 0) {                                                     \
      fprintf(stderr, "%s:%d: %s failed\n", __FILE__, __LINE__, #call);   \
      MPI_Abort(MPI_COMM_WORLD, 1);                                       \
    }                                                                     \
  } while (0)

enum { kRows = 24, kColumns = 10 };

static int rank, n, wrong;

static int Value(int row, int column) { return row * 1000 + column; }

static hid_t Transfer(H5FD_mpio_xfer_t how) {
  hid_t list;
  MUST(list = H5Pcreate(H5P_DATASET_XFER));
  MUST(H5Pset_dxpl_mpio(list, how));
  return list;
}

/* Rank r has every n'th column of a matrix with kColumns columns for each. */
static void Columns(hid_t file, const char* name, int in_chunks, H5FD_mpio_xfer_t how) {
  int mine[kRows][kColumns], back[kRows][kColumns];
  hid_t space, memory, set, plist, list = Transfer(how);
  MUST(space = H5Screate_simple(2, (hsize_t[]){kRows, (hsize_t)(kColumns * n)}, NULL));
  MUST(memory = H5Screate_simple(2, (hsize_t[]){kRows, kColumns}, NULL));
  MUST(plist = H5Pcreate(H5P_DATASET_CREATE));
  if (in_chunks) MUST(H5Pset_chunk(plist, 2, (hsize_t[]){5, 7}));
  MUST(set = H5Dcreate2(file, name, H5T_STD_I32BE, space, H5P_DEFAULT, plist, H5P_DEFAULT));
  MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){0, (hsize_t)rank}, (hsize_t[]){1, (hsize_t)n}, (hsize_t[]){kRows, kColumns}, NULL));
  for (int i = 0; i < kRows; i++)
    for (int j = 0; j < kColumns; j++) mine[i][j] = Value(i, j * n + rank);
  MUST(H5Dwrite(set, H5T_NATIVE_INT, memory, space, list, mine));
  MUST(H5Dclose(set));
  MUST(H5Fflush(file, H5F_SCOPE_GLOBAL));
  MPI_Barrier(MPI_COMM_WORLD);
  MUST(set = H5Dopen2(file, name, H5P_DEFAULT));
  /* What the neighbour wrote. */
  const int right = (rank + 1) % n;
  MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){0, (hsize_t)right}, (hsize_t[]){1, (hsize_t)n}, (hsize_t[]){kRows, kColumns}, NULL));
  MUST(H5Dread(set, H5T_NATIVE_INT, memory, space, list, back));
  for (int i = 0; i < kRows; i++)
    for (int j = 0; j < kColumns; j++) wrong += back[i][j] != Value(i, j * n + right);
  MUST(H5Dclose(set));
  MUST(H5Pclose(plist));
  MUST(H5Pclose(list));
  MUST(H5Sclose(space));
  MUST(H5Sclose(memory));
}

/* Blocks of rows; the last rank has none. */
static void Rows(hid_t file, const char* name, H5FD_mpio_xfer_t how) {
  double mine[kColumns * 4], back[kColumns * 4];
  hid_t space, memory, set, list = Transfer(how);
  const int rows = n == 1 || rank < n - 1 ? 4 : 0;
  MUST(space = H5Screate_simple(2, (hsize_t[]){(hsize_t)(4 * n), kColumns}, NULL));
  MUST(memory = H5Screate_simple(2, (hsize_t[]){4, kColumns}, NULL));
  MUST(set = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  if (rows > 0) {
    MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){(hsize_t)(4 * rank), 0}, NULL, (hsize_t[]){4, kColumns}, NULL));
  } else {
    MUST(H5Sselect_none(space));
    MUST(H5Sselect_none(memory));
  }
  for (int i = 0; i < 4 * kColumns; i++) mine[i] = rank + i / 100.0;
  MUST(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, list, mine));
  MPI_Barrier(MPI_COMM_WORLD);
  MUST(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, list, back));
  for (int i = 0; i < rows * kColumns; i++) wrong += back[i] != mine[i];
  MUST(H5Dclose(set));
  MUST(H5Pclose(list));
  MUST(H5Sclose(space));
  MUST(H5Sclose(memory));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  hid_t access, file, attribute, scalar;
  int all = 0, answer = 42, got = 0;
  MUST(access = H5Pcreate(H5P_FILE_ACCESS));
  MUST(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
  MUST(file = H5Fcreate("parallel.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access));
  Columns(file, "/contiguous_collective", 0, H5FD_MPIO_COLLECTIVE);
  Columns(file, "/contiguous_independent", 0, H5FD_MPIO_INDEPENDENT);
  Columns(file, "/chunks_collective", 1, H5FD_MPIO_COLLECTIVE);
  Columns(file, "/chunks_independent", 1, H5FD_MPIO_INDEPENDENT);
  Rows(file, "/rows_collective", H5FD_MPIO_COLLECTIVE);
  Rows(file, "/rows_independent", H5FD_MPIO_INDEPENDENT);
  MUST(scalar = H5Screate(H5S_SCALAR));
  MUST(attribute = H5Acreate2(file, "answer", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT));
  MUST(H5Awrite(attribute, H5T_NATIVE_INT, &answer));
  MUST(H5Aclose(attribute));
  MUST(H5Fclose(file));
  /* Opened again, and by one process alone with the POSIX driver. */
  MUST(file = H5Fopen("parallel.h5", H5F_ACC_RDONLY, access));
  MUST(attribute = H5Aopen(file, "answer", H5P_DEFAULT));
  MUST(H5Aread(attribute, H5T_NATIVE_INT, &got));
  wrong += got != 42;
  MUST(H5Aclose(attribute));
  MUST(H5Fclose(file));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    int* whole = malloc(sizeof(int) * kRows * kColumns * (size_t)n);
    hid_t set;
    MUST(file = H5Fopen("parallel.h5", H5F_ACC_RDONLY, H5P_DEFAULT));
    MUST(set = H5Dopen2(file, "/contiguous_collective", H5P_DEFAULT));
    MUST(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, whole));
    for (int i = 0; i < kRows * kColumns * n; i++) wrong += whole[i] != Value(i / (kColumns * n), i % (kColumns * n));
    MUST(H5Dclose(set));
    MUST(H5Fclose(file));
    free(whole);
    unlink("parallel.h5");
  }
  MUST(H5Sclose(scalar));
  MUST(H5Pclose(access));
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("Parallel HDF5: %d wrong\n", all);
  MPI_Finalize();
  return 0;
}
