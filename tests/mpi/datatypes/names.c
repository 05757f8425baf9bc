/* Names of types; types as arguments of MPI_Type_dup; commit of predefined types; handles survive the conversion to Fortran and back. */
#include "tests/mpi/check.h"

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  char name[MPI_MAX_OBJECT_NAME];
  int length;
  static const struct {
    MPI_Datatype type;
    const char* name;
  } kNames[] = {{MPI_INT, "MPI_INT"},
                {MPI_DOUBLE, "MPI_DOUBLE"},
                {MPI_UNSIGNED_LONG_LONG, "MPI_UNSIGNED_LONG_LONG"},
                {MPI_FLOAT_INT, "MPI_FLOAT_INT"},
                {MPI_2INT, "MPI_2INT"},
                {MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX"},
                {MPI_DOUBLE_PRECISION, "MPI_DOUBLE_PRECISION"},
                {MPI_AINT, "MPI_AINT"},
                {MPI_PACKED, "MPI_PACKED"}};
  for (unsigned i = 0; i < sizeof kNames / sizeof *kNames; i++) {
    MPI_Type_get_name(kNames[i].type, name, &length);
    CHECK_STR(name, kNames[i].name);
    CHECK_EQ(length, strlen(kNames[i].name));
    MPI_Datatype again = kNames[i].type;
    CHECK_OK(MPI_Type_commit(&again));
    CHECK_EQ(again, kNames[i].type);
    CHECK_EQ(MPI_Type_f2c(MPI_Type_c2f(kNames[i].type)), kNames[i].type);
  }
  MPI_Datatype type;
  MPI_Type_contiguous(2, MPI_INT, &type);
  MPI_Type_get_name(type, name, &length);
  CHECK_STR(name, "");
  CHECK_EQ(length, 0);
  MPI_Type_set_name(type, "a pair");
  MPI_Type_get_name(type, name, &length);
  CHECK_STR(name, "a pair");
  CHECK_EQ(length, 6);
  CHECK_EQ(MPI_Type_f2c(MPI_Type_c2f(type)), type);
  MPI_Type_free(&type);
  return End();
}
