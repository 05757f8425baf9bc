/* A sum over clusters that share one MPI_COMM_WORLD (IMPI): each cluster sums over its own network, and one rank of each then sums between the clusters.
 * IMPI's attributes say which ranks belong together: those with the same IMPI_CLIENT_COLOR.
 *
 *   impirun -server 2                                          prints HOST:PORT
 *   impirun -client 0 HOST:PORT -n 4 ./two_level_sum           on one cluster
 *   impirun -client 1 HOST:PORT -n 4 ./two_level_sum           on the other one
 *
 * In a job that is no IMPI job, all ranks are one cluster. */
#include <mpi.h>
#include <stdio.h>

/* Numbers of which each rank has as many, so that a sum moves something. */
enum { kNumbers = 100000 };

static double mine[kNumbers], sum[kNumbers];

/* An attribute of MPI_COMM_WORLD; `otherwise` where there is none, or the MPI library does not know it. */
static int Attribute(int keyval, int otherwise) {
  int *value = NULL, found = 0;
  if (keyval != MPI_KEYVAL_INVALID) MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &found);
  return found ? *value : otherwise;
}

int main(int argc, char** argv) {
#ifdef IMPI_CLIENT_COLOR
  const int color_key = IMPI_CLIENT_COLOR, size_key = IMPI_CLIENT_SIZE;
#else
  const int color_key = MPI_KEYVAL_INVALID, size_key = MPI_KEYVAL_INVALID;
#endif
  MPI_Comm cluster, between;
  int rank, size, place, errors = 0, all_errors;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, Attribute(color_key, 0), rank, &cluster);
  MPI_Comm_rank(cluster, &place);
  MPI_Comm_split(MPI_COMM_WORLD, place == 0 ? 0 : MPI_UNDEFINED, rank, &between);

  for (int i = 0; i < kNumbers; i++) mine[i] = rank + i;
  MPI_Reduce(mine, sum, kNumbers, MPI_DOUBLE, MPI_SUM, 0, cluster);
  /* Only this goes from one cluster to another, however many ranks they have. */
  if (between != MPI_COMM_NULL) MPI_Allreduce(MPI_IN_PLACE, sum, kNumbers, MPI_DOUBLE, MPI_SUM, between);
  MPI_Bcast(sum, kNumbers, MPI_DOUBLE, 0, cluster);

  for (int i = 0; i < kNumbers; i++) errors += sum[i] != size * (size - 1.0) / 2 + (double)size * i;
  MPI_Reduce(&errors, &all_errors, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("two_level_sum: %d ranks in %d clusters, %d numbers are wrong\n", size, Attribute(size_key, 1), all_errors);
  if (between != MPI_COMM_NULL) MPI_Comm_free(&between);
  MPI_Comm_free(&cluster);
  MPI_Finalize();
  return errors != 0;
}
