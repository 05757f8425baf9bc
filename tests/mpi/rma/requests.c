/* The request forms (MPI 4.0 section 12.3.5): Rput, Rget, Raccumulate, Rget_accumulate, completed singly and among messages. */
#include "tests/mpi/check.h"

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  enum { kCount = 10000 };
  int *memory, *out = malloc(sizeof(int) * kCount), *in = malloc(sizeof(int) * kCount);
  MPI_Win win;
  MPI_Win_allocate(sizeof(int) * kCount, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  for (int i = 0; i < kCount; i++) memory[i] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  for (int round = 0; round < 5; round++) {
    MPI_Request requests[4];
    MPI_Status status;
    for (int i = 0; i < kCount; i++) out[i] = world_rank * 10 + round + i, in[i] = -1;
    MPI_Rput(out, kCount, MPI_INT, Right(), 0, kCount, MPI_INT, win, &requests[0]);
    MPI_Wait(&requests[0], &status);
    CHECK_EQ(requests[0], MPI_REQUEST_NULL);
    for (int i = 0; i < kCount; i++) out[i] = -3;  /* complete at the origin */
    MPI_Win_flush(Right(), win);
    MPI_Rget(in, kCount, MPI_INT, Right(), 0, kCount, MPI_INT, win, &requests[0]);
    int got = -1, done = 0;
    MPI_Irecv(&got, 1, MPI_INT, Left(), 5, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&world_rank, 1, MPI_INT, Right(), 5, MPI_COMM_WORLD, &requests[2]);
    while (!done) MPI_Testall(3, requests, &done, MPI_STATUSES_IGNORE);
    CHECK_EQ(got, Left());
    for (int i = 0; i < kCount; i++) CHECK_EQ(in[i], world_rank * 10 + round + i);
    int one[2] = {1, 2}, was[2] = {-1, -1};
    MPI_Raccumulate(one, 2, MPI_INT, Right(), 4, 2, MPI_INT, MPI_SUM, win, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Win_flush(Right(), win);
    MPI_Rget_accumulate(one, 2, MPI_INT, was, 2, MPI_INT, Right(), 4, 2, MPI_INT, MPI_SUM, win, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    CHECK_EQ(was[0], world_rank * 10 + round + 4 + 1);
    CHECK_EQ(was[1], world_rank * 10 + round + 5 + 2);
    MPI_Rput(out, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Win_flush_all(win);
  }
  /* Many at once, waited for in any order. */
  MPI_Request many[32];
  for (int i = 0; i < 32; i++) {
    out[i] = 7000 + i;
    MPI_Rput(&out[i], 1, MPI_INT, Right(), i, 1, MPI_INT, win, &many[i]);
  }
  for (int i = 0; i < 32; i++) {
    int index;
    MPI_Waitany(32, many, &index, MPI_STATUS_IGNORE);
    CHECK(index >= 0 && index < 32);
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
  for (int i = 0; i < 32; i++) CHECK_EQ(memory[i], 7000 + i);
  MPI_Win_unlock(world_rank, win);
  MPI_Win_free(&win);
  free(out), free(in);
  return End();
}
