/* Versions, names, clocks, memory, MPI_Initialized and its kin (MPI 4.0 chapter 9), thread levels, profiling names, MPI_T. */
#include "tests/mpi/check.h"

int main(int argc, char** argv) {
  int flag = 1, provided = -1, version = 0, subversion = -1, length = 0;
  MPI_Initialized(&flag);
  CHECK(!flag);
  MPI_Finalized(&flag);
  CHECK(!flag);
  MPI_Get_version(&version, &subversion);  /* also before MPI_Init */
  CHECK(version >= 3);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  CHECK(provided >= MPI_THREAD_FUNNELED && provided <= MPI_THREAD_MULTIPLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Initialized(&flag);
  CHECK(flag);
  int again = -1;
  MPI_Query_thread(&again);
  CHECK_EQ(again, provided);
  MPI_Is_thread_main(&flag);
  CHECK(flag);

  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Get_library_version(text, &length);
  CHECK(length > 0 && (int)strlen(text) == length);
  char name[MPI_MAX_PROCESSOR_NAME];
  MPI_Get_processor_name(name, &length);
  CHECK(length > 0 && (int)strlen(name) == length);

  const double tick = MPI_Wtick(), start = MPI_Wtime();
  CHECK(tick > 0 && tick < 0.01);
  double now = start;
  while (now < start + 0.01) {
    const double next = MPI_Wtime();
    CHECK(next >= now);
    now = next;
  }
  double* memory = NULL;
  MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &memory);
  memory[0] = 1, memory[(1 << 17) - 1] = 2;
  CHECK(memory[0] + memory[(1 << 17) - 1] == 3);
  MPI_Free_mem(memory);
  MPI_Pcontrol(1);

  int rank = -1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CHECK_EQ(rank, world_rank);

  /* MPI_T: may be empty, but must answer. */
  int level, count = -1;
  CHECK_EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, &level), MPI_SUCCESS);
  CHECK_EQ(MPI_T_cvar_get_num(&count), MPI_SUCCESS);
  CHECK(count >= 0);
  for (int i = 0; i < count; i++) {
    char cvar[256], description[2048];
    int cvar_length = sizeof cvar, description_length = sizeof description, verbosity, bind, scope;
    MPI_Datatype type;
    MPI_T_enum values;
    CHECK_EQ(MPI_T_cvar_get_info(i, cvar, &cvar_length, &verbosity, &type, &values, description, &description_length, &bind, &scope),
             MPI_SUCCESS);
    int index = -1;
    CHECK_EQ(MPI_T_cvar_get_index(cvar, &index), MPI_SUCCESS);
    CHECK_EQ(index, i);
  }
  CHECK_EQ(MPI_T_pvar_get_num(&count), MPI_SUCCESS);
  CHECK(count >= 0);
  CHECK_EQ(MPI_T_category_get_num(&count), MPI_SUCCESS);
  CHECK_EQ(MPI_T_cvar_get_info(-1, text, &length, &flag, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
  CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);

  MPI_Finalize();
  MPI_Finalized(&flag);
  CHECK(flag);
  MPI_Initialized(&flag);
  CHECK(flag);
  MPI_Get_version(&version, &subversion);
  return failures != 0;
}
