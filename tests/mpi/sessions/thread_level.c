/* MPI_Session_get_info tells the level of thread support that is in force, whoever asked for it (MPI 4.0 section 11.3.1). */
#include "../check.h"

static const char* const levels[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"};

static int LevelOf(MPI_Session session) {
  MPI_Info info;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int there = 0, level = MPI_THREAD_SINGLE;
  CHECK_OK(MPI_Session_get_info(session, &info));
  MPI_Info_get(info, "thread_level", MPI_MAX_INFO_VAL, value, &there);
  CHECK(there);
  while (level <= MPI_THREAD_MULTIPLE && strcmp(value, levels[level]) != 0) ++level;
  CHECK(level <= MPI_THREAD_MULTIPLE);
  MPI_Info_free(&info);
  return level;
}

int main(int argc, char** argv) {
  MPI_Session plain, funneled;
  MPI_Info hints;
  int provided = -1;
  CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &plain));
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "thread_level", "MPI_THREAD_FUNNELED");
  CHECK_OK(MPI_Session_init(hints, MPI_ERRORS_RETURN, &funneled));
  MPI_Info_free(&hints);
  CHECK(LevelOf(funneled) >= MPI_THREAD_FUNNELED);
  CHECK_EQ(LevelOf(plain), LevelOf(funneled)); /* of one process */
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
  CHECK_EQ(LevelOf(plain), MPI_THREAD_MULTIPLE);
  CHECK_EQ(LevelOf(funneled), MPI_THREAD_MULTIPLE);
  CHECK_OK(MPI_Session_finalize(&funneled));
  CHECK_OK(MPI_Session_finalize(&plain));
  MPI_Finalize();
  return failures != 0;
}
