/* Sessions beside MPI_Init and MPI_Finalize, one of which outlives them. */
#include "../check.h"

int main(int argc, char** argv) {
  MPI_Session before, within;
  CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &before));
  MPI_Group group;
  CHECK_OK(MPI_Group_from_session_pset(before, "mpi://WORLD", &group));
  MPI_Comm own;
  CHECK_OK(MPI_Comm_create_from_group(group, "org.example.own", MPI_INFO_NULL, MPI_ERRORS_RETURN, &own));
  Begin(&argc, &argv);
  CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &within));
  int one = 1, sum = 0, flag;
  CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQ(sum, world_size);
  CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, own));
  CHECK_EQ(sum, world_size);
  CHECK_OK(MPI_Session_finalize(&within));
  MPI_Finalize();
  MPI_Finalized(&flag);
  CHECK(flag);
  CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, own));
  CHECK_EQ(sum, world_size);
  MPI_Comm_free(&own);
  MPI_Group_free(&group);
  CHECK_OK(MPI_Session_finalize(&before));
  return failures != 0;
}
