/* Info objects (MPI 4.0 chapter 10). */
#include "tests/mpi/check.h"

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Info info, copy;
  char value[MPI_MAX_INFO_VAL + 1], key[MPI_MAX_INFO_KEY + 1];
  int n = -1, length, flag;
  MPI_Info_create(&info);
  MPI_Info_get_nkeys(info, &n);
  CHECK_EQ(n, 0);
  MPI_Info_set(info, "first", "1");
  MPI_Info_set(info, "second", "two words");
  MPI_Info_set(info, "first", "one");
  MPI_Info_get_nkeys(info, &n);
  CHECK_EQ(n, 2);
  MPI_Info_get(info, "first", sizeof value - 1, value, &flag);
  CHECK(flag);
  CHECK_STR(value, "one");
  if (!MpichDeviates("MPI_Info_get refuses a value that it would have to cut")) {
    MPI_Info_get(info, "second", 3, value, &flag);
    CHECK(flag);
    CHECK_STR(value, "two");
  }
  MPI_Info_get_valuelen(info, "second", &length, &flag);
  CHECK(flag);
  CHECK_EQ(length, 9);
  MPI_Info_get(info, "third", 10, value, &flag);
  CHECK(!flag);
  length = sizeof value;
  MPI_Info_get_string(info, "second", &length, value, &flag);
  CHECK(flag);
  CHECK_STR(value, "two words");
  CHECK_EQ(length, 10);
  length = 4;
  MPI_Info_get_string(info, "second", &length, value, &flag);
  CHECK_STR(value, "two");
  CHECK_EQ(length, 10);
  int seen = 0;
  for (int i = 0; i < n; i++) {
    MPI_Info_get_nthkey(info, i, key);
    seen += strcmp(key, "first") == 0 ? 1 : strcmp(key, "second") == 0 ? 2 : 100;
  }
  CHECK_EQ(seen, 3);
  MPI_Info_dup(info, &copy);
  MPI_Info_delete(info, "first");
  MPI_Info_get(info, "first", 10, value, &flag);
  CHECK(!flag);
  MPI_Info_get(copy, "first", 10, value, &flag);
  CHECK(flag);
  MPI_Info_free(&info);
  CHECK_EQ(info, MPI_INFO_NULL);
  MPI_Info_free(&copy);
  /* Long keys and values. */
  MPI_Info_create(&info);
  memset(key, 'k', MPI_MAX_INFO_KEY - 1);
  key[MPI_MAX_INFO_KEY - 1] = 0;
  memset(value, 'v', MPI_MAX_INFO_VAL - 1);
  value[MPI_MAX_INFO_VAL - 1] = 0;
  char back[MPI_MAX_INFO_VAL + 1];
  MPI_Info_set(info, key, value);
  MPI_Info_get(info, key, MPI_MAX_INFO_VAL, back, &flag);
  CHECK(flag);
  CHECK_STR(back, value);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Info_delete(info, "absent"), MPI_ERR_INFO_NOKEY);
  CHECK_CLASS(MPI_Info_set(info, "", "x"), MPI_ERR_INFO_KEY);
  CHECK_CLASS(MPI_Info_set(MPI_INFO_NULL, "a", "x"), MpichDeviates("says MPI_ERR_ARG") ? MPI_ERR_ARG : MPI_ERR_INFO);
  MPI_Info_free(&info);
  /* Hints that nobody knows are ignored, and those of a communicator can be asked for. */
  MPI_Comm dup;
  MPI_Info_create(&info);
  MPI_Info_set(info, "no_such_hint_at_all", "x");
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  CHECK_OK(MPI_Comm_set_info(dup, info));
  MPI_Info_free(&info);
  CHECK_OK(MPI_Comm_get_info(dup, &info));
  CHECK(info != MPI_INFO_NULL);
  MPI_Info_free(&info);
  MPI_Comm_free(&dup);
  MPI_Info_get(MPI_INFO_ENV, "wdir", sizeof value - 1, value, &flag);
  return End();
}
