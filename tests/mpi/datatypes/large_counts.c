/* The _c bindings with MPI_Count, and types of more than 2 GiB that are described but not moved (MPI 4.0 section 2.5.8). */
#include "tests/mpi/check.h"

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  static int out[1000], in[1000];
  for (int i = 0; i < 1000; i++) out[i] = world_rank * 1000 + i;
  MPI_Status status;
  MPI_Count count, elements;
  MPI_Request requests[2];
  MPI_Isend_c(out, (MPI_Count)1000, MPI_INT, Right(), 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_c(in, (MPI_Count)1000, MPI_INT, Left(), 1, MPI_COMM_WORLD, &status);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Get_count_c(&status, MPI_INT, &count);
  CHECK_EQ(count, 1000);
  MPI_Get_elements_c(&status, MPI_INT, &elements);
  CHECK_EQ(elements, 1000);
  for (int i = 0; i < 1000; i++) CHECK_EQ(in[i], Left() * 1000 + i);
  int sum[2], mine[2] = {world_rank, 1};
  MPI_Allreduce_c(mine, sum, (MPI_Count)2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(sum[0], world_size * (world_size - 1) / 2);
  MPI_Bcast_c(out, (MPI_Count)1000, MPI_INT, 0, MPI_COMM_WORLD);
  CHECK_EQ(out[999], 999);
  int *all = malloc(sizeof(int) * world_size), *places_in = malloc(sizeof(int) * world_size);
  MPI_Allgather_c(&world_rank, (MPI_Count)1, MPI_INT, all, (MPI_Count)1, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < world_size; r++) CHECK_EQ(all[r], r);
  MPI_Count counts[64];
  MPI_Aint places[64];
  for (int r = 0; r < world_size; r++) counts[r] = 1, places[r] = world_size - 1 - r;
  MPI_Allgatherv_c(&world_rank, (MPI_Count)1, MPI_INT, places_in, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < world_size; r++) CHECK_EQ(places_in[r], world_size - 1 - r);
  free(all);
  free(places_in);

  /* Eight GiB, as a type of types. */
  MPI_Datatype gib, eight, strided;
  MPI_Count size, lower, extent;
  int small;
  MPI_Type_contiguous(1 << 30, MPI_BYTE, &gib);
  MPI_Type_contiguous(8, gib, &eight);
  MPI_Type_commit(&eight);
  MPI_Type_size_x(eight, &size);
  CHECK_EQ(size, 8L << 30);
  MPI_Type_size(eight, &small);  /* does not fit into an int */
  CHECK_EQ(small, MPI_UNDEFINED);
  MPI_Type_get_extent_x(eight, &lower, &extent);
  CHECK_EQ(extent, 8L << 30);
  MPI_Type_contiguous_c((MPI_Count)3 << 31, MPI_INT, &strided);
  MPI_Type_size_c(strided, &size);
  CHECK_EQ(size, 3L << 33);
  MPI_Type_free(&strided);
  MPI_Type_vector_c(4, 1, (MPI_Count)1 << 32, MPI_DOUBLE, &strided);
  MPI_Type_get_extent_c(strided, &lower, &extent);
  CHECK_EQ(extent, (3L << 35) + 8);
  MPI_Type_free(&strided);
  MPI_Status_set_elements_x(&status, MPI_BYTE, 5L << 30);
  MPI_Get_elements_x(&status, MPI_BYTE, &elements);
  CHECK_EQ(elements, 5L << 30);
  int too_small;
  MPI_Get_count(&status, MPI_BYTE, &too_small);
  CHECK_EQ(too_small, MPI_UNDEFINED);
  MPI_Get_count(&status, gib, &too_small);
  CHECK_EQ(too_small, 5);
  MPI_Type_free(&gib);
  MPI_Type_free(&eight);
  return End();
}
