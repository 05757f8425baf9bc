/* late FILE GO: opens a port, whose name goes into FILE, and waits until a caller has knocked; says so, and waits until the file GO is there. Then
 * it accepts a caller and parts from it, twice. */
#include <unistd.h>

#include "tests/mpi/check.h"

static void Say(const char* text, int code) {
  int class = 0;
  MPI_Error_class(code, &class);
  printf("%s %d\n", text, class);
  fflush(stdout);
}

/* Messages that have come before their receive, as a knock does. */
static unsigned long long Unexpected(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  unsigned long long count = 0;
  MPI_T_pvar_read(session, handle, &count);
  return count;
}

int main(int argc, char** argv) {
  int provided, index, count;
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  char port[MPI_MAX_PORT_NAME] = "";
  Begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  CHECK_EQ(MPI_T_pvar_get_index("unexpected_messages", MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
  MPI_T_pvar_session_create(&session);
  CHECK_EQ(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count), MPI_SUCCESS);
  MPI_T_pvar_start(session, handle);
  CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
  FILE* file = fopen(argv[1], "w");
  fputs(port, file);
  fclose(file);
  Say("waits", MPI_SUCCESS);
  for (int flag; Unexpected(session, handle) == 0;) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  Say("knocked", MPI_SUCCESS);
  while (access(argv[2], F_OK) != 0) usleep(2000);
  for (int i = 0; i < 2; ++i) {
    MPI_Comm inter = MPI_COMM_NULL;
    const int code = MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    Say("met", code);
    if (code == MPI_SUCCESS) Say("parted", MPI_Comm_disconnect(&inter));
  }
  CHECK_OK(MPI_Close_port(port));
  MPI_T_pvar_handle_free(session, &handle);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  return End();
}
