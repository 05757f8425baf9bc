/* Predefined attributes of MPI_COMM_WORLD (MPI 4.0 section 9.1.2) and the deprecated names of attribute functions. */
#include "tests/mpi/check.h"

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  int *value, found;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
  CHECK(found && *value >= 32767);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &found);
  CHECK(found);
  if (found) CHECK(*value == MPI_PROC_NULL || (*value >= 0 && *value < world_size));
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &found);
  if (found) CHECK(*value == MPI_ANY_SOURCE || *value == MPI_PROC_NULL || (*value >= 0 && *value < world_size));
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &found);
  if (found) CHECK(*value == 0 || *value == 1);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &found);
  CHECK(!found); /* no launcher was told one, and programs that ask take a number for a limit */
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &found);
  if (found) CHECK_EQ(*value, 0);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &found);
  CHECK(found && *value >= MPI_ERR_LASTCODE);
  int key;
  long number = 5, *got;
  MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &key, NULL);
  MPI_Comm comm, dup;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Attr_put(comm, key, &number);
  MPI_Comm_dup(comm, &dup);
  MPI_Attr_get(dup, key, &got, &found);
  CHECK(found && got == &number);
  MPI_Attr_delete(dup, key);
  MPI_Attr_get(dup, key, &got, &found);
  CHECK(!found);
  MPI_Keyval_free(&key);
  MPI_Comm_free(&comm);
  MPI_Comm_free(&dup);
  return End();
}
