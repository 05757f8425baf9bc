/* HDF5's MPICH build without MPI-IO: each rank writes a file of its own with the POSIX driver and reads its neighbour's; the library's
 * MPI is initialised and its types are used with a communicator in a property list. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                        \
  do {                                                                    \
    if ((call) < 0) {                                                     \
      fprintf(stderr, "%s:%d: %s failed\n", __FILE__, __LINE__, #call);   \
      MPI_Abort(MPI_COMM_WORLD, 1);                                       \
    }                                                                     \
  } while (0)

enum { kRows = 40, kColumns = 30 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, n, data[kRows][kColumns], back[10][kColumns], wrong = 0, all;
  char name[64];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  for (int i = 0; i < kRows * kColumns; i++) data[i / kColumns][i % kColumns] = rank * 10000 + i;
  snprintf(name, sizeof name, "rank%d.h5", rank);
  hid_t file, space, set, plist, memory;
  MUST(file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  MUST(space = H5Screate_simple(2, (hsize_t[]){kRows, kColumns}, NULL));
  MUST(plist = H5Pcreate(H5P_DATASET_CREATE));
  MUST(H5Pset_chunk(plist, 2, (hsize_t[]){10, 10}));
  MUST(set = H5Dcreate2(file, "/data", H5T_NATIVE_INT, space, H5P_DEFAULT, plist, H5P_DEFAULT));
  MUST(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
  MUST(H5Dclose(set));
  MUST(H5Fclose(file));
  MPI_Barrier(MPI_COMM_WORLD);
  const int right = (rank + 1) % n;
  snprintf(name, sizeof name, "rank%d.h5", right);
  MUST(file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT));
  MUST(set = H5Dopen2(file, "/data", H5P_DEFAULT));
  MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){5, 0}, NULL, (hsize_t[]){10, kColumns}, NULL));
  MUST(memory = H5Screate_simple(2, (hsize_t[]){10, kColumns}, NULL));
  MUST(H5Dread(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, back));
  for (int i = 0; i < 10 * kColumns; i++) wrong += back[i / kColumns][i % kColumns] != right * 10000 + 5 * kColumns + i;
  MUST(H5Dclose(set));
  MUST(H5Fclose(file));
  MUST(H5Sclose(memory));
  MUST(H5Sclose(space));
  MUST(H5Pclose(plist));
  /* A file access list with a communicator: HDF5 duplicates communicator and info, and frees them again. */
  hid_t access;
  MPI_Comm got;
  MPI_Info info;
  MUST(access = H5Pcreate(H5P_FILE_ACCESS));
  MUST(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
  MUST(H5Pget_fapl_mpio(access, &got, &info));
  int result;
  MPI_Comm_compare(got, MPI_COMM_WORLD, &result);
  wrong += result != MPI_CONGRUENT;
  MPI_Comm_free(&got);
  MUST(H5Pclose(access));
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("HDF5: %d wrong\n", all);
  MPI_Finalize();
  return all != 0;
}
