/* Collectives on an intercommunicator (MPI 4.0 section 6.2.2): even ranks on one side, odd ones on the other. */
#include "tests/mpi/check.h"

enum { kCount = 3000 };

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm side, inter;
  const int odd = world_rank % 2;
  MPI_Comm_split(MPI_COMM_WORLD, odd, world_rank, &side);
  MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, odd ? 0 : 1, 3, &inter);
  int me, mine, theirs;
  MPI_Comm_rank(inter, &me);
  MPI_Comm_size(inter, &mine);
  MPI_Comm_remote_size(inter, &theirs);
  static int buffer[kCount];
  MPI_Barrier(inter);
  /* Broadcast from each rank of the even side to the odd one. */
  for (int root = 0; root < (odd ? theirs : mine); root++) {
    for (int i = 0; i < kCount; i++) buffer[i] = odd ? -1 : me * 10000 + i;
    MPI_Bcast(buffer, kCount, MPI_INT, odd ? root : root == me ? MPI_ROOT : MPI_PROC_NULL, inter);
    for (int i = 0; i < kCount && odd; i++) CHECK_EQ(buffer[i], root * 10000 + i);
  }
  /* The root gets the reduction of the other side. */
  int value = world_rank + 1, result = -1, expected = 0;
  for (int r = !odd; r < world_size; r += 2) expected += r + 1;  /* the other side's sum */
  MPI_Reduce(&value, &result, 1, MPI_INT, MPI_SUM, odd ? (me == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, inter);
  CHECK_EQ(result, odd && me == 0 ? expected : -1);
  MPI_Allreduce(&value, &result, 1, MPI_INT, MPI_SUM, inter);
  CHECK_EQ(result, expected);
  int* all = malloc(sizeof(int) * 10 * world_size);
  int ten[10];
  for (int i = 0; i < 10; i++) ten[i] = world_rank * 10 + i;
  MPI_Allgather(ten, 10, MPI_INT, all, 10, MPI_INT, inter);
  for (int i = 0; i < 10 * theirs; i++) CHECK_EQ(all[i], (i / 10 * 2 + !odd) * 10 + i % 10);
  memset(all, 0xee, sizeof(int) * 10 * world_size);
  MPI_Gather(ten, 10, MPI_INT, all, 10, MPI_INT, odd ? 0 : (me == 0 ? MPI_ROOT : MPI_PROC_NULL), inter);
  for (int i = 0; i < 10 * theirs && !odd && me == 0; i++) CHECK_EQ(all[i], (i / 10 * 2 + 1) * 10 + i % 10);
  for (int i = 0; i < 10 * theirs; i++) all[i] = world_rank * 1000 + i;
  MPI_Scatter(all, 10, MPI_INT, ten, 10, MPI_INT, odd ? 0 : (me == 0 ? MPI_ROOT : MPI_PROC_NULL), inter);
  for (int i = 0; i < 10 && odd; i++) CHECK_EQ(ten[i], 0 * 1000 + me * 10 + i);
  int *out = malloc(sizeof(int) * world_size), *in = malloc(sizeof(int) * world_size);
  for (int r = 0; r < theirs; r++) out[r] = world_rank * 100 + r;
  MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, inter);
  for (int r = 0; r < theirs; r++) CHECK_EQ(in[r], (r * 2 + !odd) * 100 + me);
  free(out), free(in), free(all);
  MPI_Request request;
  MPI_Iallreduce(&value, &result, 1, MPI_INT, MPI_MAX, inter, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQ(result, 2 * (theirs - 1) + !odd + 1);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&side);
  return End();
}
