/* beside threads|progress join|spawn|publish|lookup|unpublish: rank 0 makes a call that waits for something else than messages, until rank 1 has had all its
 * messages from rank 0: of another thread there, or those that rank 0 had begun to send. Who ends the wait: of MPI_Comm_join rank 1 at the other end of the socket,
 * of a spawn the file GATE, for which the start of the proxy waits, of names NAMES, the pid of a name server that rank 0 has stopped. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/mpi/check.h"

enum { kMessages = 30, kPause = 10000 /* microseconds between them */, kBytes = 1 << 20 };

static const char *call, *program, *service = "beside";
static char port[MPI_MAX_PORT_NAME];
static atomic_int begun;

static pid_t NameServer(void) { return (pid_t)atoi(getenv("NAMES")); }

/* A socket between the two ranks. */
static int Connect(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (world_rank == 0) {
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "weft beside %d", (int)getpid());
    CHECK(bind(fd, (struct sockaddr*)&address, sizeof address) == 0);
    CHECK(listen(fd, 1) == 0);
    MPI_Send(&address, sizeof address, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    const int accepted = accept(fd, NULL, NULL);
    close(fd);
    return accepted;
  }
  MPI_Recv(&address, sizeof address, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(connect(fd, (struct sockaddr*)&address, sizeof address) == 0);
  return fd;
}

static void Join(int fd) {
  MPI_Comm made;
  CHECK_OK(MPI_Comm_join(fd, &made));
  CHECK_OK(MPI_Comm_disconnect(&made));
}

static void Spawn(void) {
  MPI_Comm made;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "host", "slow.invalid");
  char* words[] = {"child", NULL};
  CHECK_OK(MPI_Comm_spawn(program, words, 1, info, 0, MPI_COMM_SELF, &made, MPI_ERRCODES_IGNORE));
  CHECK_OK(MPI_Comm_disconnect(&made));
  MPI_Info_free(&info);
}

static void Call(int fd) {
  char found[MPI_MAX_PORT_NAME] = "";
  if (strcmp(call, "join") == 0) Join(fd);
  if (strcmp(call, "spawn") == 0) Spawn();
  if (strcmp(call, "publish") == 0) CHECK_OK(MPI_Publish_name(service, MPI_INFO_NULL, port));
  if (strcmp(call, "lookup") == 0) CHECK_OK(MPI_Lookup_name(service, MPI_INFO_NULL, found));
  if (strcmp(call, "unpublish") == 0) CHECK_OK(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
  if (strcmp(call, "lookup") == 0) CHECK_STR(found, port);
}

/* --- what goes on meanwhile --- */

static char data[kMessages][kBytes];
static MPI_Request requests[kMessages];

static void* Ping(void* unused) {
  while (!begun) usleep(1000);
  for (int i = 0; i < kMessages; ++i) {
    int value = i;
    CHECK_OK(MPI_Sendrecv_replace(&value, 1, MPI_INT, 1, 2, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(value, i + 1);
    usleep(kPause);
  }
  return unused;
}

static void Answer(int threads) {
  for (int i = 0; i < kMessages; ++i) {
    int value;
    if (threads) {
      CHECK_OK(MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      ++value;
      CHECK_OK(MPI_Send(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD));
    } else {
      CHECK_OK(MPI_Recv(data[0], kBytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      usleep(kPause);
    }
  }
}

static void EndTheWait(int fd) {
  if (strcmp(call, "join") == 0) {
    Join(fd);
  } else if (strcmp(call, "spawn") == 0) {
    close(open(getenv("GATE"), O_CREAT | O_WRONLY, 0600));
  } else {
    kill(NameServer(), SIGCONT);
  }
}

int main(int argc, char** argv) {
  program = argv[0];
  if (strcmp(argv[1], "child") == 0) {
    MPI_Comm parent;
    Begin(&argc, &argv);
    CHECK_OK(MPI_Comm_get_parent(&parent));
    CHECK_OK(MPI_Comm_disconnect(&parent));
    return End();
  }
  const int threads = strcmp(argv[1], "threads") == 0, names = strcmp(argv[2], "spawn") != 0 && strcmp(argv[2], "join") != 0;
  call = argv[2];
  int provided;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  const int fd = strcmp(call, "join") == 0 ? Connect() : -1;
  if (world_rank == 0) {
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    if (names && strcmp(call, "publish") != 0) CHECK_OK(MPI_Publish_name(service, MPI_INFO_NULL, port));
    pthread_t thread;
    if (threads) pthread_create(&thread, NULL, Ping, NULL);
    for (int i = 0; !threads && i < kMessages; ++i) MPI_Isend(data[i], kBytes, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
    if (names) kill(NameServer(), SIGSTOP);
    begun = 1;
    Call(fd);
    if (threads) pthread_join(thread, NULL);
    if (!threads) CHECK_OK(MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE));
    if (names && strcmp(call, "unpublish") != 0) CHECK_OK(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
    CHECK_OK(MPI_Close_port(port));
  } else {
    Answer(threads);
    EndTheWait(fd);
  }
  return End();
}
