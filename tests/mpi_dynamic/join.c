/* MPI_Comm_join of two ranks over a TCP connection of their own. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/mpi/check.h"

static int Listen(unsigned short* port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(bind(fd, (struct sockaddr*)&address, sizeof address) == 0);
  CHECK(listen(fd, 1) == 0);
  CHECK(getsockname(fd, (struct sockaddr*)&address, &length) == 0);
  *port = address.sin_port;
  return fd;
}

static int Dial(unsigned short port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = port};
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(connect(fd, (struct sockaddr*)&address, sizeof address) == 0);
  return fd;
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm made = MPI_COMM_SELF;
  CHECK_CLASS(MPI_Comm_join(-1, &made), MPI_ERR_OTHER);
  CHECK(made == MPI_COMM_NULL);
  unsigned short port;
  int fd = -1;
  if (world_rank == 0) {
    const int listener = Listen(&port);
    MPI_Send(&port, sizeof port, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    fd = accept(listener, NULL, NULL);
    close(listener);
  } else if (world_rank == 1) {
    MPI_Recv(&port, sizeof port, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    fd = Dial(port);
  }
  for (int round = 0; round < 3 && fd >= 0; ++round) {
    CHECK_OK(MPI_Comm_join(fd, &made));
    int mine = world_rank + 10 * round, theirs = -1, size = 0;
    CHECK_OK(MPI_Comm_remote_size(made, &size));
    CHECK_EQ(size, 1);
    CHECK_OK(MPI_Sendrecv(&mine, 1, MPI_INT, 0, 1, &theirs, 1, MPI_INT, 0, 1, made, MPI_STATUS_IGNORE));
    CHECK_EQ(theirs, 1 - world_rank + 10 * round);
    CHECK_OK(MPI_Comm_disconnect(&made));
    /* The socket is the program's again, and empty. */
    char byte = (char)('a' + world_rank), other = 0;
    CHECK(write(fd, &byte, 1) == 1);
    CHECK(read(fd, &other, 1) == 1);
    CHECK_EQ(other, 'b' - world_rank);
  }
  /* The other closes it. */
  if (world_rank == 0) close(fd);
  if (world_rank == 1) CHECK_CLASS(MPI_Comm_join(fd, &made), MPI_ERR_OTHER);
  MPI_Barrier(MPI_COMM_WORLD);
  return End();
}
