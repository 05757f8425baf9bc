/* What ports refuse, and how: two ranks of one job, which meet over MPI_COMM_SELF. */
#include <unistd.h>

#include "tests/mpi/check.h"

static MPI_Info TimeOut(const char* seconds) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "timeout", seconds);
  return info;
}

static void ExpectRefusal(const char* port, int class) {
  MPI_Comm made = MPI_COMM_SELF;
  CHECK_CLASS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made), class);
  CHECK(made == MPI_COMM_NULL);
}

/* Each knock that was given up gives its context id back: there are some 65,500 of them. The owner of the port is in MPI, and answers. */
static void GiveUpOften(const char* port, int knocks) {
  enum { kBeforeEachAnswer = 500 };
  MPI_Info at_once = TimeOut("0");
  for (int sent = 0; sent < knocks && failures == 0; ++sent) {
    MPI_Comm made = MPI_COMM_SELF;
    if (port != NULL) CHECK_CLASS(MPI_Comm_connect(port, at_once, 0, MPI_COMM_SELF, &made), MPI_ERR_PORT);
    if (sent % kBeforeEachAnswer == 0) MPI_Sendrecv(NULL, 0, MPI_INT, 1 - world_rank, 4, NULL, 0, MPI_INT, 1 - world_rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Info_free(&at_once);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  char port[MPI_MAX_PORT_NAME] = "", other[MPI_MAX_PORT_NAME] = "";
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Info soon = TimeOut("1"), never = TimeOut("soon");

  /* Names that are none. */
  const char* garbage[] = {"", "port", "weft", "weft:::::", "tag#0$description#host$port#4000$ifname#127.0.0.1$"};
  for (size_t i = 0; i < sizeof garbage / sizeof *garbage; ++i) {
    ExpectRefusal(garbage[i], MPI_ERR_PORT);
    CHECK_CLASS(MPI_Comm_accept(garbage[i], MPI_INFO_NULL, 0, MPI_COMM_SELF, &made), MPI_ERR_PORT);
    CHECK_CLASS(MPI_Close_port(garbage[i]), MPI_ERR_PORT);
  }
  CHECK_CLASS(MPI_Open_port(MPI_INFO_NULL, NULL), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Comm_connect(NULL, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made), MPI_ERR_ARG);

  CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
  CHECK_CLASS(MPI_Comm_accept(port, MPI_INFO_NULL, 1, MPI_COMM_SELF, &made), MPI_ERR_ROOT);
  CHECK_CLASS(MPI_Comm_accept(port, never, 0, MPI_COMM_SELF, &made), MPI_ERR_INFO_VALUE);
  ExpectRefusal(port, MPI_ERR_PORT); /* its own */
  /* That of a process whose address is another's by now, which says so: nothing is to be waited for. */
  char stale[MPI_MAX_PORT_NAME];
  strcpy(stale, port);
  stale[7] = stale[7] == '0' ? '1' : '0'; /* of the job */
  double start = MPI_Wtime();
  ExpectRefusal(stale, MPI_ERR_PORT);
  CHECK(MPI_Wtime() - start < 10);
  /* Nobody comes. */
  start = MPI_Wtime();
  CHECK_CLASS(MPI_Comm_accept(port, soon, 0, MPI_COMM_SELF, &made), MPI_ERR_PORT);
  CHECK(MPI_Wtime() - start > 0.9 && MPI_Wtime() - start < 20);
  /* An error at the root is one at all ranks. */
  CHECK_CLASS(MPI_Comm_connect(world_rank == 0 ? "port" : port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &made), MPI_ERR_PORT);

  if (world_size > 1 && world_rank < 2) {
    MPI_Sendrecv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1 - world_rank, 1, other, MPI_MAX_PORT_NAME, MPI_CHAR, 1 - world_rank, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* Rank 0 knocks and gives up; rank 1 comes later, and takes the next. */
    if (world_rank == 0) {
      start = MPI_Wtime();
      CHECK_CLASS(MPI_Comm_connect(other, soon, 0, MPI_COMM_SELF, &made), MPI_ERR_PORT);
      CHECK(MPI_Wtime() - start > 0.9 && MPI_Wtime() - start < 20);
      MPI_Send(NULL, 0, MPI_INT, 1, 2, MPI_COMM_WORLD);
      CHECK_OK(MPI_Comm_connect(other, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made));
    } else {
      MPI_Recv(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made));
    }
    int mine = world_rank, theirs = -1;
    CHECK_OK(MPI_Sendrecv(&mine, 1, MPI_INT, 0, 1, &theirs, 1, MPI_INT, 0, 1, made, MPI_STATUS_IGNORE));
    CHECK_EQ(theirs, 1 - world_rank);
    CHECK_OK(MPI_Comm_disconnect(&made));
    GiveUpOften(world_rank == 0 ? other : NULL, 70000);
    /* A port of the right process and number, but made up. */
    char forged[MPI_MAX_PORT_NAME];
    strcpy(forged, other);
    char* digit = strstr(forged, "=") - 12; /* of the secret */
    *digit = *digit == '0' ? '1' : '0';
    if (world_rank == 1) CHECK_CLASS(MPI_Comm_accept(forged, soon, 0, MPI_COMM_SELF, &made), MPI_ERR_PORT);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Close_port(port));
    CHECK_CLASS(MPI_Close_port(port), MPI_ERR_PORT);
    MPI_Barrier(MPI_COMM_WORLD);
    /* Each is told while it waits in MPI. */
    if (world_rank == 0) ExpectRefusal(other, MPI_ERR_PORT);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 1) ExpectRefusal(other, MPI_ERR_PORT);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Info_free(&soon);
  MPI_Info_free(&never);
  return End();
}
