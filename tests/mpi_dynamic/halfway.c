/* halfway live FILE [DEATHS] | halfway die FILE: jobs of one process come to the port of a job of several, one after the other, become one communicator with it, and die
 * each in the middle of a call that makes something over that communicator. The call has an error at some of the living, and at others perhaps not; none of
 * them waits for another who has left it. "live" goes through all calls (or the first DEATHS of what follows), with the dying process as first and as last rank, and with different ranks coming to
 * the call only when they know of the death; it prints how many deaths that takes, and one line after each. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "tests/mpi/check.h"

enum { kHalf = 100000 /* microseconds, after which what can be sent without the others is sent */, kLook = 5000 };

static MPI_Comm inter, merged;

static void Drop(MPI_Comm* comm) {
  if (*comm != MPI_COMM_NULL && *comm != MPI_COMM_SELF) MPI_Comm_free(comm);
}

/* Windows that some have and some have not cannot be freed together. */
static int Window(int code, MPI_Win* window) {
  (void)window;
  return code;
}

static int CreateWindow(void) {
  static int memory[4];
  MPI_Win window;
  return Window(MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, merged, &window), &window);
}

static int AllocateWindow(void) {
  int* memory;
  MPI_Win window;
  return Window(MPI_Win_allocate(64, 1, MPI_INFO_NULL, merged, &memory, &window), &window);
}

static int AllocateShared(void) {
  int* memory;
  MPI_Win window;
  return Window(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, merged, &memory, &window), &window);
}

static int CreateDynamic(void) {
  MPI_Win window;
  return Window(MPI_Win_create_dynamic(MPI_INFO_NULL, merged, &window), &window);
}

static int Duplicate(void) {
  MPI_Comm made = MPI_COMM_NULL;
  const int code = MPI_Comm_dup(merged, &made);
  Drop(&made);
  return code;
}

static int Split(void) {
  MPI_Comm made = MPI_COMM_NULL;
  const int code = MPI_Comm_split(merged, world_rank % 2, 0, &made);
  Drop(&made);
  return code;
}

static int SplitByHost(void) {
  MPI_Comm made = MPI_COMM_NULL;
  const int code = MPI_Comm_split_type(merged, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
  Drop(&made);
  return code;
}

static int CreateWith(int (*create)(MPI_Comm, MPI_Group, MPI_Comm*)) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group group;
  MPI_Comm_group(merged, &group);
  const int code = create(merged, group, &made);
  MPI_Group_free(&group);
  Drop(&made);
  return code;
}

static int CreateGroup(MPI_Comm comm, MPI_Group group, MPI_Comm* made) { return MPI_Comm_create_group(comm, group, 5, made); }
static int Create(void) { return CreateWith(&MPI_Comm_create); }
static int CreateOfGroup(void) { return CreateWith(&CreateGroup); }

static int DuplicateInter(void) {
  MPI_Comm made = MPI_COMM_NULL;
  const int code = MPI_Comm_dup(inter, &made);
  Drop(&made);
  return code;
}

static int SplitInter(void) {
  MPI_Comm made = MPI_COMM_NULL;
  const int code = MPI_Comm_split(inter, 0, 0, &made);
  Drop(&made);
  return code;
}

static int Merge(void) {
  MPI_Comm made = MPI_COMM_NULL;
  const int code = MPI_Intercomm_merge(inter, 0, &made);
  Drop(&made);
  return code;
}

/* The root, which is never the one that dies, has nothing to come to. */
static int Connect(void) {
  MPI_Comm made = MPI_COMM_NULL;
  return MPI_Comm_connect("nowhere", MPI_INFO_NULL, 1, merged, &made);
}

static const struct {
  const char* name;
  int (*make)(void);
} calls[] = {
    {"MPI_Win_create", CreateWindow},          {"MPI_Win_allocate", AllocateWindow}, {"MPI_Win_allocate_shared", AllocateShared},
    {"MPI_Win_create_dynamic", CreateDynamic}, {"MPI_Comm_dup", Duplicate},          {"MPI_Comm_split", Split},
    {"MPI_Comm_split_type", SplitByHost},      {"MPI_Comm_create", Create},          {"MPI_Comm_create_group", CreateOfGroup},
    {"MPI_Comm_dup of two groups", DuplicateInter}, {"MPI_Comm_split of two groups", SplitInter}, {"MPI_Intercomm_merge", Merge},
    {"MPI_Comm_connect", Connect},
};
enum { kCalls = sizeof calls / sizeof *calls };

/* What a death is like. */
struct Death {
  int call;
  int first;          /* whether the dying process is rank 0 of the communicator, else it is the last */
  unsigned int late;  /* bit r: rank r of the living comes to the call when it knows of the death */
};

static const unsigned int late[] = {~0u, 1, 2, 4};
enum { kDeaths = kCalls * 2 * sizeof late / sizeof *late };

static struct Death DeathOf(int number) {
  const struct Death death = {.call = number % kCalls, .first = number / kCalls % 2, .late = late[number / kCalls / 2]};
  return death;
}

/* --- */

static void Become(int live, const struct Death* death) {
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  CHECK_OK(MPI_Intercomm_merge(inter, live == death->first, &merged));
  MPI_Comm_set_errhandler(merged, MPI_ERRORS_RETURN);
}

static void* DieSoon(void* unused) {
  usleep(kHalf);
  kill(getpid(), SIGKILL);
  return unused;
}

static void Die(const char* port) {
  CHECK_OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
  struct Death death;
  CHECK_OK(MPI_Recv(&death, sizeof death, MPI_BYTE, 0, 1, inter, MPI_STATUS_IGNORE));
  Become(0, &death);
  pthread_t thread;
  pthread_create(&thread, NULL, DieSoon, NULL);
  calls[death.call].make();
  pause();
}

/* Who only waits for a message learns of it late where nothing else is sent (SCTP). */
static void AwaitDeath(void) {
  char nothing = 0;
  int code;
  while ((code = MPI_Send(&nothing, 1, MPI_BYTE, 0, 2, inter)) == MPI_SUCCESS) usleep(kLook);
  CHECK_CLASS(code, MPIX_ERR_PROC_FAILED);
}

/* How many of the living the call failed at. */
static int Live(const char* port, int number) {
  struct Death death = DeathOf(number);
  CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
  if (world_rank == 0) CHECK_OK(MPI_Send(&death, sizeof death, MPI_BYTE, 0, 1, inter));
  Become(1, &death);
  if (death.late >> world_rank & 1) AwaitDeath();
  const int failed = calls[death.call].make() != MPI_SUCCESS;
  int all = 0;
  CHECK_OK(MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  if (world_rank == 0)
    printf("%s: %d of %d failed, the dead was %s, %x late\n", calls[death.call].name, all, world_size, death.first ? "first" : "last", death.late);
  fflush(stdout);
  CHECK_OK(MPI_Comm_free(&merged));
  CHECK_OK(MPI_Comm_free(&inter));
  return all;
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  char port[MPI_MAX_PORT_NAME] = "";
  if (strcmp(argv[1], "die") == 0) {
    FILE* file = fopen(argv[2], "r");
    if (fgets(port, sizeof port, file) == NULL) port[0] = 0;
    fclose(file);
    Die(port);
  }
  const int deaths = argc > 3 ? atoi(argv[3]) : (int)kDeaths;
  if (world_rank == 0) {
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    FILE* file = fopen(argv[2], "w");
    fputs(port, file);
    fclose(file);
    printf("deaths %d\n", deaths);
    fflush(stdout);
  }
  int failed = 0;
  for (int number = 0; number < deaths; ++number) failed += Live(port, number);
  CHECK(failed >= deaths); /* the dead was needed */
  if (world_rank == 0) CHECK_OK(MPI_Close_port(port));
  return End();
}
