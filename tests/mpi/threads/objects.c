/* Threads make, use and free objects at once: types, groups, infos, attributes, persistent requests, communicators of disjoint parents. */
#include "tests/mpi/threads/threads.h"

static MPI_Comm comms[kThreads];

static void MakeAndFree(int t) {
  for (int i = 0; i < 50; i++) {
    MPI_Datatype type;
    MPI_Type_vector(10, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    int out[20], in[20];
    for (int k = 0; k < 20; k++) out[k] = t * 100 + k, in[k] = -1;
    MPI_Sendrecv(out, 1, type, world_rank, t, in, 1, type, world_rank, t, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = 0; k < 20; k++) {
      if (k < 19) CHECK_EQ(in[k], k % 2 == 0 ? t * 100 + k : -1);
    }
    MPI_Type_free(&type);
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &world_rank, &group);
    int rank;
    MPI_Group_rank(group, &rank);
    CHECK_EQ(rank, 0);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "a", "b");
    MPI_Info_free(&info);
    MPI_Request request;
    MPI_Recv_init(in, 1, MPI_INT, world_rank, 50 + t, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Send(out, 1, MPI_INT, world_rank, 50 + t, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
  }
}

static void DupAtOnce(int t) {
  for (int i = 0; i < 5; i++) {
    MPI_Comm dup;
    int sum;
    MPI_Comm_dup(comms[t], &dup);
    MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, dup);
    CHECK_EQ(sum, world_size * (world_size - 1) / 2);
    MPI_Comm_free(&dup);
  }
}

int main(int argc, char** argv) {
  BeginThreads(&argc, &argv);
  for (int t = 0; t < kThreads; t++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
  InThreads(MakeAndFree);
  InThreads(DupAtOnce);
  for (int t = 0; t < kThreads; t++) MPI_Comm_free(&comms[t]);
  return End();
}
