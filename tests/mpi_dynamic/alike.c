/* alike SCENARIO [WORDS] [disconnect]: what jobs that grow and meet do by the standard alone, for any MPI library: what the ranks print is the same everywhere. Errors end the program.
 *
 *   tree LEVELS       a tree of jobs, each of which spawns two processes, and becomes one communicator with them
 *   several           MPI_Comm_spawn_multiple of two commands, a rank other than 0 the root
 *   windows           the spawned and those who spawned them merge, and MPI_Put and MPI_Accumulate between the jobs; MPI_Win_create
 *   accept, connect   ROUNDS FILE: two jobs that meet at a port, talk and part, so often
 *   ring              NUMBER FILE: three jobs in a ring, each accepting the one before it and connecting to the one behind
 *   serve, ask        a server that publishes its port, and a client that looks it up
 *   join              two ranks become an intercommunicator over a socket of their own
 */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/mpi/check.h"

enum { kLook = 2000 /* microseconds */ };

static char* program;
static int disconnects; /* merged communicators, instead of freeing them */

static void Say(const char* format, const char* what, long long a, long long b, long long c) {
  char line[200];
  snprintf(line, sizeof line, format, what, a, b, c);
  fprintf(stdout, "%s\n", line);
  fflush(stdout);
}

static int RankIn(MPI_Comm comm) {
  int rank;
  CHECK_OK(MPI_Comm_rank(comm, &rank));
  return rank;
}

static int SizeOf(MPI_Comm comm) {
  int size;
  CHECK_OK(MPI_Comm_size(comm, &size));
  return size;
}

static int RemoteSizeOf(MPI_Comm inter) {
  int size;
  CHECK_OK(MPI_Comm_remote_size(inter, &size));
  return size;
}

/* Everyone of one side hears from everyone of the other. */
static void Talk(const char* who, MPI_Comm inter) {
  const int remote = RemoteSizeOf(inter), rank = RankIn(inter);
  long long mine = rank + 1, sum = 0;
  for (int i = 0; i < remote; ++i) {
    int out = 100 * rank + i, in = -1;
    CHECK_OK(MPI_Sendrecv(&out, 1, MPI_INT, i, 7, &in, 1, MPI_INT, i, 7, inter, MPI_STATUS_IGNORE));
    CHECK_EQ(in, 100 * i + rank);
  }
  CHECK_OK(MPI_Allreduce(&mine, &sum, 1, MPI_LONG_LONG, MPI_SUM, inter));
  Say("%s: rank %lld hears %lld from %lld", who, rank, sum, remote);
}

/* One communicator of both, `high` behind. */
static MPI_Comm Merge(const char* who, MPI_Comm inter, int high) {
  MPI_Comm merged;
  CHECK_OK(MPI_Intercomm_merge(inter, high, &merged));
  long long mine = RankIn(merged), sum = 0;
  CHECK_OK(MPI_Allreduce(&mine, &sum, 1, MPI_LONG_LONG, MPI_SUM, merged));
  Say("%s: merged rank %lld of %lld, all are %lld", who, mine, SizeOf(merged), sum);
  return merged;
}

static void MergeAndPart(const char* who, MPI_Comm inter, int high) {
  Talk(who, inter);
  MPI_Comm merged = Merge(who, inter, high);
  if (disconnects) CHECK_OK(MPI_Comm_disconnect(&merged));
  if (!disconnects) CHECK_OK(MPI_Comm_free(&merged));
  CHECK_OK(MPI_Comm_disconnect(&inter));
}

/* --- spawned jobs --- */

static void Tree(const char* levels) {
  char fewer[20], who[40];
  const int level = atoi(levels);
  MPI_Comm parent, children;
  CHECK_OK(MPI_Comm_get_parent(&parent));
  snprintf(fewer, sizeof fewer, "%d", level - 1);
  if (level > 0) {
    char* words[] = {"tree", fewer, disconnects ? "disconnect" : NULL, NULL};
    CHECK_OK(MPI_Comm_spawn(program, words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    snprintf(who, sizeof who, "level %d, to its children", level);
    MergeAndPart(who, children, 0);
  }
  snprintf(who, sizeof who, "level %d, to its parents", level);
  if (parent != MPI_COMM_NULL) MergeAndPart(who, parent, 1);
}

static void Several(void) {
  char *commands[] = {program, program}, *first[] = {"child", "first", NULL}, *second[] = {"child", "second", NULL}, **words[] = {first, second};
  int counts[] = {1, 2}, codes[3] = {-1, -1, -1};
  MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
  MPI_Comm children;
  CHECK_OK(MPI_Comm_spawn_multiple(2, commands, words, counts, infos, world_size - 1, MPI_COMM_WORLD, &children, codes));
  for (int i = 0; i < 3; ++i) CHECK_EQ(codes[i], MPI_SUCCESS);
  MergeAndPart("parents", children, 0);
}

static void Child(const char* which) {
  int *appnum, flag;
  MPI_Comm parent;
  CHECK_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag));
  Say("%s: rank %lld of %lld, application %lld", which, world_rank, world_size, flag ? *appnum : -1);
  CHECK_OK(MPI_Comm_get_parent(&parent));
  MergeAndPart(which, parent, 1);
}

/* Over memory of MPI_Alloc_mem, or of malloc. */
static void UseWindow(const char* who, MPI_Comm merged, int of_alloc_mem) {
  const int rank = RankIn(merged), size = SizeOf(merged), one = 1;
  int* memory = NULL;
  MPI_Win window;
  if (of_alloc_mem) {
    CHECK_OK(MPI_Alloc_mem((MPI_Aint)(((size_t)size + 1) * sizeof(int)), MPI_INFO_NULL, &memory));
  } else {
    memory = malloc(((size_t)size + 1) * sizeof(int));
  }
  memset(memory, 0, ((size_t)size + 1) * sizeof(int));
  CHECK_OK(MPI_Win_create(memory, (MPI_Aint)(((size_t)size + 1) * sizeof(int)), sizeof(int), MPI_INFO_NULL, merged, &window));
  CHECK_OK(MPI_Win_fence(0, window));
  const int value = 10 * rank + 1;
  for (int i = 0; i < size; ++i) {
    CHECK_OK(MPI_Put(&value, 1, MPI_INT, i, rank, 1, MPI_INT, window));
    CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT, i, size, 1, MPI_INT, MPI_SUM, window));
  }
  CHECK_OK(MPI_Win_fence(0, window));
  long long sum = 0;
  for (int i = 0; i < size; ++i) sum += memory[i];
  Say("%s: window of rank %lld has %lld and %lld", who, rank, sum, memory[size]);
  CHECK_OK(MPI_Win_free(&window));
  if (of_alloc_mem) {
    MPI_Free_mem(memory);
  } else {
    free(memory);
  }
}

static void Windows(void) {
  MPI_Comm parent, inter;
  CHECK_OK(MPI_Comm_get_parent(&parent));
  const int spawned = parent != MPI_COMM_NULL;
  const char* who = spawned ? "spawned" : "parents";
  char* words[] = {"windows", NULL};
  inter = parent;
  if (!spawned) CHECK_OK(MPI_Comm_spawn(program, words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
  MPI_Comm merged = Merge(who, inter, spawned);
  UseWindow(who, merged, 0);
  UseWindow(who, merged, 1);
  CHECK_OK(MPI_Comm_free(&merged));
  CHECK_OK(MPI_Comm_disconnect(&inter));
}

/* --- jobs that meet --- */

static void WriteName(const char* path, const char* port) {
  char draft[4096];
  snprintf(draft, sizeof draft, "%s.draft", path);
  FILE* file = fopen(draft, "w");
  fputs(port, file);
  fclose(file);
  rename(draft, path);
}

static void ReadName(const char* path, char* port) {
  FILE* file;
  while ((file = fopen(path, "r")) == NULL) usleep(kLook);
  if (fgets(port, MPI_MAX_PORT_NAME, file) == NULL) port[0] = 0;
  fclose(file);
}

static void Meet(int accepts, const char* rounds, const char* path) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm inter;
  if (accepts && world_rank == 0) {
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    WriteName(path, port);
  }
  if (!accepts && world_rank == 0) ReadName(path, port);
  const int count = atoi(rounds);
  for (int round = 0; round < count; ++round) {
    if (accepts) CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    if (!accepts) CHECK_OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    long long mine = round, sum = 0;
    CHECK_OK(MPI_Allreduce(&mine, &sum, 1, MPI_LONG_LONG, MPI_SUM, inter));
    CHECK_EQ(sum, (long long)round * RemoteSizeOf(inter));
    if (round == count - 1) {
      MergeAndPart(accepts ? "accepts" : "connects", inter, !accepts);
    } else {
      CHECK_OK(MPI_Comm_disconnect(&inter));
    }
  }
  if (accepts && world_rank == 0) CHECK_OK(MPI_Close_port(port));
}

/* The token goes around once, each adding its number. */
static void Ring(int number, const char* path) {
  char mine[MPI_MAX_PORT_NAME] = "", next[MPI_MAX_PORT_NAME] = "", name[4096], who[20];
  MPI_Comm before, behind;
  if (world_rank == 0) {
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, mine));
    snprintf(name, sizeof name, "%s.%d", path, number);
    WriteName(name, mine);
    snprintf(name, sizeof name, "%s.%d", path, (number + 1) % 3);
    ReadName(name, next);
  }
  if (number == 0) CHECK_OK(MPI_Comm_connect(next, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &behind));
  CHECK_OK(MPI_Comm_accept(mine, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &before));
  if (number != 0) CHECK_OK(MPI_Comm_connect(next, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &behind));
  if (world_rank == 0) {
    int token = 100;
    if (number == 0) CHECK_OK(MPI_Send(&token, 1, MPI_INT, 0, 3, behind));
    CHECK_OK(MPI_Recv(&token, 1, MPI_INT, 0, 3, before, MPI_STATUS_IGNORE));
    snprintf(who, sizeof who, "ring %d", number);
    Say("%s: token %lld from %lld, to %lld", who, token, RemoteSizeOf(before), RemoteSizeOf(behind));
    token += number;
    if (number != 0) CHECK_OK(MPI_Send(&token, 1, MPI_INT, 0, 3, behind));
    CHECK_OK(MPI_Close_port(mine));
  }
  /* In an order in which nobody waits for another. */
  MPI_Comm* order[] = {&behind, &before};
  if (number == 1) order[0] = &before, order[1] = &behind;
  for (int i = 0; i < 2; ++i) CHECK_OK(MPI_Comm_disconnect(order[i]));
}

static void Serve(void) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm inter;
  if (world_rank == 0) {
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    CHECK_OK(MPI_Publish_name("alike", MPI_INFO_NULL, port));
  }
  CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
  MergeAndPart("serves", inter, 0);
  if (world_rank == 0) {
    CHECK_OK(MPI_Unpublish_name("alike", MPI_INFO_NULL, port));
    CHECK_OK(MPI_Close_port(port));
  }
}

static void Ask(void) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm inter;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  while (world_rank == 0 && MPI_Lookup_name("alike", MPI_INFO_NULL, port) != MPI_SUCCESS) usleep(kLook);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  CHECK_OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
  MergeAndPart("asks", inter, 1);
}

static void Join(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (world_rank == 0) {
    const int listener = fd;
    CHECK(bind(listener, (struct sockaddr*)&address, sizeof address) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr*)&address, &length) == 0);
    CHECK_OK(MPI_Send(&address, sizeof address, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    fd = accept(listener, NULL, NULL);
    close(listener);
  } else {
    CHECK_OK(MPI_Recv(&address, sizeof address, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(connect(fd, (struct sockaddr*)&address, sizeof address) == 0);
  }
  MPI_Comm inter;
  CHECK_OK(MPI_Comm_join(fd, &inter));
  MergeAndPart(world_rank == 0 ? "first" : "second", inter, world_rank);
  close(fd);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  program = argv[0];
  const char* scenario = argv[1];
  disconnects = strcmp(argv[argc - 1], "disconnect") == 0;
  if (strcmp(scenario, "tree") == 0) Tree(argv[2]);
  if (strcmp(scenario, "several") == 0) Several();
  if (strcmp(scenario, "child") == 0) Child(argv[2]);
  if (strcmp(scenario, "windows") == 0) Windows();
  if (strcmp(scenario, "accept") == 0 || strcmp(scenario, "connect") == 0) Meet(scenario[0] == 'a', argv[2], argv[3]);
  if (strcmp(scenario, "ring") == 0) Ring(atoi(argv[2]), argv[3]);
  if (strcmp(scenario, "serve") == 0) Serve();
  if (strcmp(scenario, "ask") == 0) Ask();
  if (strcmp(scenario, "join") == 0) Join();
  return End();
}
