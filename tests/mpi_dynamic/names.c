/* MPI_Publish_name and its kin, within one job. */
#include "tests/mpi/check.h"

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
  const char* service = "a service of these";
  CHECK_CLASS(MPI_Lookup_name(service, MPI_INFO_NULL, found), MPI_ERR_NAME);
  CHECK_CLASS(MPI_Publish_name("", MPI_INFO_NULL, "port"), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Lookup_name(service, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) {
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    CHECK_OK(MPI_Publish_name(service, MPI_INFO_NULL, port));
    CHECK_CLASS(MPI_Publish_name(service, MPI_INFO_NULL, "another"), MPI_ERR_SERVICE);
  }
  MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
  CHECK_OK(MPI_Lookup_name(service, MPI_INFO_NULL, found));
  CHECK_STR(found, port);
  if (world_rank < 2 && world_size > 1) {
    MPI_Comm inter;
    if (world_rank == 0) CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    if (world_rank == 1) CHECK_OK(MPI_Comm_connect(found, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    CHECK_OK(MPI_Comm_disconnect(&inter));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) {
    CHECK_OK(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
    CHECK_CLASS(MPI_Unpublish_name(service, MPI_INFO_NULL, port), MPI_ERR_SERVICE);
    CHECK_OK(MPI_Close_port(port));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_CLASS(MPI_Lookup_name(service, MPI_INFO_NULL, found), MPI_ERR_NAME);
  return End();
}
