/* Which handler hears of an error when the program set only that of MPI_COMM_WORLD. Errors without an object, and those of objects that
 * nobody gave a handler to, go there: the standard would end the job, MPICH, and programs that are written for it, go on. */
#include "tests/mpi/check.h"

static int called;
static MPI_Comm seen;
static void Count(MPI_Comm* comm, int* code, ...) {
  (void)code;
  called++;
  seen = *comm;
}

static void OpenFails(MPI_Comm comm) {
  MPI_File file;
  char name[] = "/nonexistent/of/a/directory";
  CHECK(MPI_File_open(comm, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS);
}

static void OnFile(MPI_File* file, int* code, ...) {
  (void)code;
  called++;
  CHECK(*file == MPI_FILE_NULL);
}

/* Files: the handler of MPI_FILE_NULL, which returns until the program sets another, and not the communicator's, which is fatal here. */
static void Files(void) {
  MPI_Errhandler handler, got;
  CHECK_OK(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
  CHECK_EQ(got, MPI_ERRORS_RETURN);
  OpenFails(MPI_COMM_WORLD);
  CHECK(MPI_File_delete("/nonexistent/of/a/directory", MPI_INFO_NULL) != MPI_SUCCESS);
  MPI_File_create_errhandler(OnFile, &handler);
  CHECK_OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
  CHECK_OK(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
  CHECK_EQ(got, handler);
  MPI_Errhandler_free(&got);
  MPI_Errhandler_free(&handler);
  called = 0;
  OpenFails(MPI_COMM_WORLD);
  CHECK_EQ(called, 1);
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm before, after;
  MPI_Win win;
  MPI_Group group;
  MPI_Errhandler handler, got;
  int value = 0;
  void* base;
  Files();
  MPI_Comm_dup(MPI_COMM_WORLD, &before);
  MPI_Win_allocate(8, 1, MPI_INFO_NULL, before, &base, &win);
  MPI_Comm_get_errhandler(before, &got);
  CHECK_EQ(got, MPI_ERRORS_ARE_FATAL);
  MPI_Win_get_errhandler(win, &got);
  CHECK_EQ(got, MPI_ERRORS_ARE_FATAL);

  MPI_Comm_create_errhandler(Count, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Errhandler_free(&handler);
  called = 0;
  CHECK_CLASS(MPI_Type_size(MPI_DATATYPE_NULL, &value), MPI_ERR_TYPE);
  CHECK_EQ(called, 1);
  CHECK_EQ(seen, MPI_COMM_WORLD);
  group = MPI_GROUP_NULL;
  CHECK_CLASS(MPI_Group_size(group, &value), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Comm_rank(MPI_COMM_NULL, &value), MPI_ERR_COMM);
  CHECK_EQ(called, 3);
  CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, 7, 0, MPI_COMM_SELF), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, -9, 0, before), MPI_ERR_RANK);
  CHECK_EQ(called, 5);
  CHECK_EQ(seen, MPI_COMM_WORLD);
  CHECK_CLASS(MPI_Put(&value, -1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_COUNT);
  CHECK_EQ(called, 6);

  /* Made after it was set: inherited, with its own handle. */
  MPI_Comm_dup(MPI_COMM_WORLD, &after);
  CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, -9, 0, after), MPI_ERR_RANK);
  CHECK_EQ(called, 7);
  CHECK_EQ(seen, after);
  MPI_Comm_free(&after);

  if (!MpichDeviates("errors without an object never reach MPI_COMM_SELF's handler")) {
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Type_size(MPI_DATATYPE_NULL, &value), MPI_ERR_TYPE);
    CHECK_EQ(called, 7);
  }
  MPI_Win_free(&win);
  MPI_Comm_free(&before);
  return End();
}
