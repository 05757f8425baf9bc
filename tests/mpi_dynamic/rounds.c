/* rounds live FILE DEATHS | rounds die FILE SEED: jobs of one process come to the port of a job of three, one after the other, become one communicator with it, and die
 * at a random moment of a call that makes a communicator. The three have few context ids left, and each others: to agree on one takes them several rounds, of which
 * the death may be in any. It may be an error of the call at some of them or at all, of a class of the standard; nobody waits for somebody who has left the call with one. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "tests/mpi/check.h"

enum { kIds = 200000, kOneIn = 10 /* ids that stay free */ };

static MPI_Comm inter, merged;
/* Of the merged one: the ranks of its halves, of which the dying process has a place in one; and what leads from one to the other. */
static MPI_Comm half = MPI_COMM_NULL, across = MPI_COMM_NULL;
static MPI_Group everyone, own_half, other_half;
static int in_first_half;

static int Duplicate(MPI_Comm* made) { return MPI_Comm_dup(merged, made); }
static int DuplicateAcross(MPI_Comm* made) { return MPI_Comm_dup(across, made); }
static int Split(MPI_Comm* made) { return MPI_Comm_split(merged, world_rank % 2, 0, made); }
static int CreateGroup(MPI_Comm* made) { return MPI_Comm_create_group(merged, everyone, 5, made); }
static int Merge(MPI_Comm* made) { return MPI_Intercomm_merge(across, !in_first_half, made); }
static int CreateInter(MPI_Comm* made) { return MPI_Intercomm_create(half, 0, merged, in_first_half ? 1 : 0, 6, made); }
static int FromGroup(MPI_Comm* made) { return MPI_Comm_create_from_group(everyone, "rounds", MPI_INFO_NULL, MPI_ERRORS_RETURN, made); }
static int InterFromGroups(MPI_Comm* made) {
  return MPI_Intercomm_create_from_groups(own_half, 0, other_half, 0, "rounds of two", MPI_INFO_NULL, MPI_ERRORS_RETURN, made);
}

static const struct {
  const char* name;
  int (*make)(MPI_Comm*);
} calls[] = {
    {"MPI_Comm_dup", Duplicate},           {"MPI_Comm_dup of two groups", DuplicateAcross}, {"MPI_Comm_split", Split},
    {"MPI_Comm_create_group", CreateGroup}, {"MPI_Intercomm_merge", Merge},                  {"MPI_Intercomm_create", CreateInter},
    {"MPI_Comm_create_from_group", FromGroup}, {"MPI_Intercomm_create_from_groups", InterFromGroups},
};
enum { kCalls = sizeof calls / sizeof *calls };

/* All but a few ids go, other ones at each rank. */
static void UseUpIds(void) {
  static MPI_Comm comms[kIds];
  int count = 0;
  srand((unsigned)(world_rank + 1));
  while (count < kIds && MPI_Comm_dup(MPI_COMM_SELF, &comms[count]) == MPI_SUCCESS) ++count;
  for (int i = 0; i < count; ++i) {
    if (rand() % kOneIn == 0) MPI_Comm_free(&comms[i]);
  }
}

/* `high`: behind the other side. Odd ranks are one half, even ones the other. */
static void Become(int high) {
  int rank, size, ranks[4], count = 0;
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  CHECK_OK(MPI_Intercomm_merge(inter, high, &merged));
  MPI_Comm_set_errhandler(merged, MPI_ERRORS_RETURN);
  MPI_Comm_rank(merged, &rank);
  MPI_Comm_size(merged, &size);
  in_first_half = rank % 2 == 0;
  MPI_Comm_group(merged, &everyone);
  for (int i = rank % 2; i < size; i += 2) ranks[count++] = i;
  MPI_Group_incl(everyone, count, ranks, &own_half);
  MPI_Group_excl(everyone, count, ranks, &other_half);
  CHECK_OK(MPI_Comm_split(merged, rank % 2, 0, &half));
  MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
  CHECK_OK(MPI_Intercomm_create(half, 0, merged, in_first_half ? 1 : 0, 4, &across));
  MPI_Comm_set_errhandler(across, MPI_ERRORS_RETURN);
}

static void Leave(void) {
  MPI_Group* groups[] = {&everyone, &own_half, &other_half};
  MPI_Comm* comms[] = {&across, &half, &merged, &inter};
  for (int i = 0; i < 3; ++i) MPI_Group_free(groups[i]);
  for (int i = 0; i < 4; ++i) MPI_Comm_free(comms[i]);
}

/* --- */

static void* DieSoon(void* nanoseconds) {
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < (long)nanoseconds);
  kill(getpid(), SIGKILL);
  return NULL;
}

static void Die(const char* port, unsigned seed) {
  CHECK_OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
  int call, high;
  CHECK_OK(MPI_Recv(&call, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
  CHECK_OK(MPI_Recv(&high, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
  srand(seed);
  Become(high);
  MPI_Comm made;
  pthread_t thread;
  CHECK_OK(MPI_Barrier(merged));
  const long most = 1000L << rand() % 12; /* nanoseconds, to 4 ms */
  pthread_create(&thread, NULL, DieSoon, (void*)(most / 2 + rand() % most));
  calls[call].make(&made);
  pause();
}

static int Live(const char* port, int number) {
  int call = number % kCalls, high = number / kCalls % 2, low = !high, class = MPI_SUCCESS;
  CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
  if (world_rank == 0) CHECK_OK(MPI_Send(&call, 1, MPI_INT, 0, 1, inter));
  if (world_rank == 0) CHECK_OK(MPI_Send(&low, 1, MPI_INT, 0, 1, inter));
  Become(high);
  (void)MPI_Barrier(merged);
  MPI_Comm made = MPI_COMM_NULL;
  const int code = calls[call].make(&made);
  MPI_Error_class(code, &class);
  CHECK(class == MPI_SUCCESS || class == MPI_ERR_OTHER || class == MPI_ERR_TRUNCATE || class == MPI_ERR_PROC_ABORTED ||
        class == MPIX_ERR_PROC_FAILED);
  CHECK((class == MPI_SUCCESS) == (made != MPI_COMM_NULL));
  const int failed = class != MPI_SUCCESS;
  int all = 0;
  CHECK_OK(MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  if (made != MPI_COMM_NULL) CHECK_OK(MPI_Comm_free(&made));
  Leave();
  if (world_rank == 0) printf("death %d: %s failed at %d of %d\n", number, calls[call].name, all, world_size);
  fflush(stdout);
  return all;
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  char port[MPI_MAX_PORT_NAME] = "";
  if (strcmp(argv[1], "die") == 0) {
    FILE* file = fopen(argv[2], "r");
    if (fgets(port, sizeof port, file) == NULL) port[0] = 0;
    fclose(file);
    Die(port, (unsigned)atoi(argv[3]));
  }
  UseUpIds();
  const int deaths = atoi(argv[3]);
  if (world_rank == 0) {
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    FILE* file = fopen(argv[2], "w");
    fputs(port, file);
    fclose(file);
    printf("ready\n");
    fflush(stdout);
  }
  int partly = 0;
  for (int number = 0; number < deaths; ++number) {
    const int failed = Live(port, number);
    partly += failed != 0 && failed != world_size;
  }
  if (world_rank == 0) printf("%d of %d deaths were an error at some and not at others\n", partly, deaths);
  if (world_rank == 0) CHECK_OK(MPI_Close_port(port));
  return End();
}
