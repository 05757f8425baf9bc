/* wait accept|connect|talk|listen|tell FILE: one side of two jobs of which the other is killed. "accept" waits at its port for as long as it takes and
 * meets whoever comes last; "talk" connects and then waits for a message that never comes; "connect" waits to be accepted; "listen" accepts one and
 * then waits for a message from it; "tell" connects, sends messages for 5 s that nobody waits for, and waits
 * as "talk" does. Prints what it is about to wait for, and the class of the error that ended the wait. */
#include <unistd.h>

#include "tests/mpi/check.h"

static void Say(const char* text, int code) {
  int class = 0;
  MPI_Error_class(code, &class);
  printf("%s %d\n", text, class);
  fflush(stdout);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm inter = MPI_COMM_NULL;
  const int accepts = strcmp(argv[1], "accept") == 0 || strcmp(argv[1], "listen") == 0;
  const int talks = strcmp(argv[1], "talk") == 0 || strcmp(argv[1], "listen") == 0;
  if (accepts) {
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    FILE* file = fopen(argv[2], "w");
    fputs(port, file);
    fclose(file);
  } else {
    FILE* file = fopen(argv[2], "r");
    if (fgets(port, sizeof port, file) == NULL) port[0] = 0;
    fclose(file);
  }
  Say("waits", MPI_SUCCESS);
  int code = accepts ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter) : MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
  Say("met", code);
  if (code == MPI_SUCCESS) {
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    int value = 0;
    for (int i = 0; strcmp(argv[1], "tell") == 0 && i < 50 && code == MPI_SUCCESS; ++i) {
      code = MPI_Send(&value, 1, MPI_INT, 0, 2, inter);
      usleep(100000);
    }
    if (code == MPI_SUCCESS && (talks || strcmp(argv[1], "tell") == 0)) code = MPI_Recv(&value, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE);
    Say("heard", code);
    /* The other is gone, or parts in order. */
    code = MPI_Comm_disconnect(&inter);
    if (code != MPI_SUCCESS) MPI_Comm_free(&inter);
    Say("parted", code);
  }
  return End();
}
