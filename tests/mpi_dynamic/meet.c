/* meet accept|connect FILE ROUNDS [one]: two jobs meet at a port whose name is in FILE, talk over the intercommunicator, over
 * the merged communicator and by windows, of which one goes through the RNIC in any case, and part, ROUNDS times. After each round nothing of the other job is left. "one":
 * only rank 0 of this job takes part, over MPI_COMM_SELF. HOLD="ROUND FILE ...": after that round each rank says so, with its pid and the bytes that it
 * has of the heap, and waits for the file. From the second time on it waits first until it has not kMostGrowth more than the first time: what is closed may be with
 * the network for a moment. */
#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include "tests/mpi/check.h"

/* Without those of epoll: the RNIC makes a set when there are many connections at a time, and keeps it. */
static int CountDescriptors(int tell) {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  for (struct dirent* entry; (entry = readdir(directory)) != NULL; ++count) {
    char target[256] = "";
    if (readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1) > 0 && strcmp(target, "anon_inode:[eventpoll]") == 0) --count;
    if (tell) fprintf(stderr, "rank %d: descriptor %s: %s\n", world_rank, entry->d_name, target);
  }
  closedir(directory);
  return count;
}

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
  while ((file = fopen(path, "r")) == NULL) usleep(2000);
  if (fgets(port, MPI_MAX_PORT_NAME, file) == NULL) port[0] = 0;
  fclose(file);
}

/* Everyone of one side writes to everyone of the other. */
static void TalkAcross(MPI_Comm inter, int round) {
  int rank, size, remote;
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_size(inter, &size);
  MPI_Comm_remote_size(inter, &remote);
  MPI_Request* requests = malloc(2 * (size_t)remote * sizeof *requests);
  int *out = malloc((size_t)remote * sizeof(int)), *in = malloc((size_t)remote * sizeof(int));
  for (int i = 0; i < remote; ++i) {
    out[i] = 1000 * rank + 10 * i + round;
    CHECK_OK(MPI_Isend(&out[i], 1, MPI_INT, i, 7, inter, &requests[i]));
    CHECK_OK(MPI_Irecv(&in[i], 1, MPI_INT, i, 7, inter, &requests[remote + i]));
  }
  CHECK_OK(MPI_Waitall(2 * remote, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; i < remote; ++i) CHECK_EQ(in[i], 1000 * i + 10 * rank + round);
  free(requests);
  free(out);
  free(in);
  int mine = rank + 1, sum = 0;
  CHECK_OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter));
  CHECK_EQ(sum, remote * (remote + 1) / 2);
}

static void TalkMerged(MPI_Comm merged, int accepts) {
  int rank, size;
  MPI_Comm_rank(merged, &rank);
  MPI_Comm_size(merged, &size);
  int first = accepts;
  CHECK_OK(MPI_Bcast(&first, 1, MPI_INT, 0, merged));
  CHECK_EQ(first, 1); /* the accepting side came first */
  long long mine = rank, sum = 0;
  CHECK_OK(MPI_Allreduce(&mine, &sum, 1, MPI_LONG_LONG, MPI_SUM, merged));
  CHECK_EQ(sum, (long long)size * (size - 1) / 2);

  int* memory = calloc((size_t)size + 1, sizeof(int));
  MPI_Win window;
  CHECK_OK(MPI_Win_create(memory, (MPI_Aint)(((size_t)size + 1) * sizeof(int)), sizeof(int), MPI_INFO_NULL, merged, &window));
  CHECK_OK(MPI_Win_fence(0, window));
  const int value = rank + 100, one = 1;
  for (int i = 0; i < size; ++i) {
    CHECK_OK(MPI_Put(&value, 1, MPI_INT, i, rank, 1, MPI_INT, window));
    CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT, i, size, 1, MPI_INT, MPI_SUM, window));
  }
  CHECK_OK(MPI_Win_fence(0, window));
  for (int i = 0; i < size; ++i) CHECK_EQ(memory[i], i + 100);
  CHECK_EQ(memory[size], size);
  CHECK_OK(MPI_Win_free(&window));
  free(memory);
}

/* A window that always goes through the RNIC, where others may go through memory of the host. */
static void WriteMerged(MPI_Comm merged) {
  int rank, size;
  MPI_Comm_rank(merged, &rank);
  MPI_Comm_size(merged, &size);
  int* memory = calloc((size_t)size, sizeof(int));
  MPI_Aint mine, *all = malloc((size_t)size * sizeof *all);
  MPI_Get_address(memory, &mine);
  MPI_Win window;
  CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, merged, &window));
  CHECK_OK(MPI_Win_attach(window, memory, (MPI_Aint)((size_t)size * sizeof(int))));
  CHECK_OK(MPI_Allgather(&mine, 1, MPI_AINT, all, 1, MPI_AINT, merged));
  CHECK_OK(MPI_Win_fence(0, window));
  const int value = rank + 100;
  for (int i = 0; i < size; ++i) CHECK_OK(MPI_Put(&value, 1, MPI_INT, i, MPI_Aint_add(all[i], rank * (MPI_Aint)sizeof(int)), 1, MPI_INT, window));
  CHECK_OK(MPI_Win_fence(0, window));
  for (int i = 0; i < size; ++i) CHECK_EQ(memory[i], i + 100);
  CHECK_OK(MPI_Win_detach(window, memory));
  CHECK_OK(MPI_Win_free(&window));
  free(all);
  free(memory);
}

/* Which ranks of the own job speak to one another differs from round to round: all connections are made before they are counted. */
static void MeetOwnJob(void) {
  int* mine = calloc(2 * (size_t)world_size, sizeof(int));
  CHECK_OK(MPI_Alltoall(mine, 1, MPI_INT, mine + world_size, 1, MPI_INT, MPI_COMM_WORLD));
  free(mine);
}

enum { kMostGrowth = 8000, kMostLooks = 2500, kLook = 2000 /* microseconds */ };

static long HeapInUse(void) {
  const struct mallinfo2 info = mallinfo2();
  return (long)(info.uordblks + info.hblkhd);
}

static void Hold(int round) {
  static long before = -1;
  const char* text = getenv("HOLD");
  char path[1024];
  int at, length;
  for (; text != NULL && sscanf(text, "%d %1023s%n", &at, path, &length) == 2; text += length) {
    if (at != round) continue;
    for (int look = 0; before >= 0 && HeapInUse() > before + kMostGrowth && look < kMostLooks; ++look) usleep(kLook);
    before = HeapInUse();
    printf("holds %d %d %ld\n", round, (int)getpid(), before);
    fflush(stdout);
    while (access(path, F_OK) != 0) usleep(kLook);
  }
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MeetOwnJob();
  const int accepts = strcmp(argv[1], "accept") == 0, rounds = atoi(argv[3]), one = argc > 4;
  const MPI_Comm group = one ? MPI_COMM_SELF : MPI_COMM_WORLD;
  char port[MPI_MAX_PORT_NAME] = "";
  if (world_rank == 0 && accepts) {
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    WriteName(argv[2], port);
  }
  if (world_rank == 0 && !accepts) ReadName(argv[2], port);
  int before = 0;
  for (int round = 0; round < rounds && (!one || world_rank == 0); ++round) {
    MPI_Comm inter, merged;
    if (accepts) {
      CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, group, &inter));
    } else {
      CHECK_OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, group, &inter));
    }
    TalkAcross(inter, round % 10);
    CHECK_OK(MPI_Intercomm_merge(inter, !accepts, &merged));
    TalkMerged(merged, accepts);
    WriteMerged(merged);
    CHECK_OK(MPI_Comm_disconnect(&merged));
    CHECK_OK(MPI_Comm_disconnect(&inter));
    CHECK(inter == MPI_COMM_NULL);
    /* The first round made what stays: the RNIC of the windows, connections within the job. A connection that is closed may be
     * with the RNIC for a moment more. */
    int now = CountDescriptors(0);
    /* The other root may have come to the port again. */
    const int knock = accepts && world_rank == 0 && round + 1 < rounds;
    for (int look = 0; round != 0 && now > before + knock && look < 1000; ++look, now = CountDescriptors(0)) usleep(2000);
    if (round == 0) before = now;
    if (now > before + knock) {
      REPORT("round %d: %d descriptors, %d after the first", round, now, before + knock);
      CountDescriptors(1);
    }
    Hold(round);
  }
  if (world_rank == 0 && accepts) CHECK_OK(MPI_Close_port(port));
  return End();
}
