/* Persistent collectives (MPI 4.0 section 6.13): made once, started often with new data. */
#include "tests/mpi/check.h"

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  int value, sum, bcast, *all = malloc(sizeof(int) * world_size), *out = malloc(sizeof(int) * world_size),
                         *in = malloc(sizeof(int) * world_size);
  MPI_Request requests[5];
  MPI_Allreduce_init(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Bcast_init(&bcast, 1, MPI_INT, world_size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  MPI_Allgather_init(&value, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
  MPI_Alltoall_init(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[3]);
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[4]);
  for (int round = 0; round < 20; round++) {
    value = world_rank + round;
    bcast = world_rank == world_size - 1 ? round * 3 : -1;
    for (int r = 0; r < world_size; r++) out[r] = world_rank * 100 + r + round;
    if (round % 2 == 0) {
      MPI_Startall(5, requests);
    } else {
      for (int i = 0; i < 5; i++) MPI_Start(&requests[i]);
    }
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 5; i++) CHECK(requests[i] != MPI_REQUEST_NULL);
    CHECK_EQ(sum, world_size * round + world_size * (world_size - 1) / 2);
    CHECK_EQ(bcast, round * 3);
    for (int r = 0; r < world_size; r++) {
      if (!MpichDeviates("MPI_Allgather_init copies the data when it is made")) CHECK_EQ(all[r], r + round);
      CHECK_EQ(in[r], r * 100 + world_rank + round);
    }
  }
  for (int i = 0; i < 5; i++) {
    MPI_Request_free(&requests[i]);
    CHECK_EQ(requests[i], MPI_REQUEST_NULL);
  }
  free(all), free(out), free(in);
  return End();
}
