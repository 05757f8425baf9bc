/* What is wrong with one-sided calls is reported through the window's error handler with the class of the standard. */
#include "tests/mpi/check.h"

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  int memory[10] = {0}, value = 1;
  MPI_Win win;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Win_create(memory, -1, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_SIZE);
  CHECK_CLASS(MPI_Win_create(memory, sizeof memory, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_DISP);
  CHECK_CLASS(MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM);
  CHECK_OK(MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);

  /* Without an epoch. */
  CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, world_rank, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_unlock(world_rank, win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_flush(world_rank, win), MPI_ERR_RMA_SYNC);
  MPI_Barrier(MPI_COMM_WORLD);

  /* Wrong arguments inside one. */
  CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win));
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, world_size, 0, 1, MPI_INT, win), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Put(&value, -1, MPI_INT, world_rank, 0, 1, MPI_INT, win), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Put(&value, 1, MPI_DATATYPE_NULL, world_rank, 0, 1, MPI_INT, win), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, world_rank, -1, 1, MPI_INT, win), MPI_ERR_DISP);
  CHECK_CLASS(MPI_Accumulate(&value, 1, MPI_INT, world_rank, 0, 1, MPI_INT, MPI_OP_NULL, win), MPI_ERR_OP);
  MPI_Op user;
  MPI_Op_create((MPI_User_function*)NULL + 1, 1, &user);
  CHECK_CLASS(MPI_Accumulate(&value, 1, MPI_INT, world_rank, 0, 1, MPI_INT, user, win), MPI_ERR_OP);
  MPI_Op_free(&user);
  if (!MpichDeviates("MPICH does not look at the range of a window"))
    CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, world_rank, 10, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
  CHECK_OK(MPI_Put(&value, 1, MPI_INT, world_rank, 9, 1, MPI_INT, win));
  CHECK_OK(MPI_Win_unlock(world_rank, win));
  CHECK_EQ(memory[9], 1);

  /* No elements have no wrong type. */
  struct Mixed {
    int a;
    double b;
  };
  MPI_Datatype mixed;
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &mixed);
  MPI_Type_commit(&mixed);
  for (int rank = 0; rank < world_size; rank++) {
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK_OK(MPI_Accumulate(&value, 0, mixed, rank, 0, 0, mixed, MPI_SUM, win));
    CHECK_OK(MPI_Get_accumulate(&value, 0, mixed, &value, 0, mixed, rank, 0, 0, mixed, MPI_SUM, win));
    CHECK_OK(MPI_Get_accumulate(NULL, 0, MPI_INT, NULL, 0, MPI_INT, rank, 0, 0, MPI_INT, MPI_NO_OP, win));
    CHECK_OK(MPI_Win_unlock(rank, win));
  }
  MPI_Type_free(&mixed);

  const int says_arg = MpichDeviates("lock types and asserts are MPI_ERR_ARG, not classes of their own");
  CHECK_CLASS(MPI_Win_lock(12345, world_rank, 0, win), says_arg ? MPI_ERR_ARG : MPI_ERR_LOCKTYPE);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, -7, 0, win), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Win_fence(1 << 30, win), says_arg ? MPI_ERR_ARG : MPI_ERR_ASSERT);
  CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_WIN_NULL), MPI_ERR_WIN);
  MPI_Aint size;
  int unit;
  void* base;
  CHECK_CLASS(MPI_Win_shared_query(win, 0, &size, &unit, &base), MPI_ERR_RMA_FLAVOR);
  CHECK_CLASS(MPI_Win_attach(win, memory, 4), MPI_ERR_RMA_FLAVOR);
  MPI_Barrier(MPI_COMM_WORLD);

  /* A window with an open epoch is not freed. */
  CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win));
  CHECK_CLASS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
  CHECK_OK(MPI_Win_unlock(world_rank, win));
  CHECK_OK(MPI_Win_free(&win));
  return End();
}
