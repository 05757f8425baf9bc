/* overwritten_memory SEED: another process of the user, here a child of rank 0, adds small numbers to words of the memory that the ranks of the host
 * share while they work on windows and exchange messages, for half a second. Whatever it hits: each call returns, with an error or without. A rank that gets an error
 * ends with status 7. */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/mpi/check.h"

enum { kMostMappings = 64, kBytes = 1 << 20, kPage = 4096, kLine = 64, kMostLooked = 256 << 20 };
static const double kSeconds = 0.5, kLonger = 0.2;

static uint64_t state;
static uint64_t Draw(uint64_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % below;
}

static struct {
  char* at;
  size_t bytes;
} mappings[kMostMappings];

static int FindMappings(void) {
  char line[512], name[256];
  int count = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps) != NULL && count < kMostMappings) {
    unsigned long first, end;
    name[0] = 0;
    if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %255s", &first, &end, name) < 3 || strstr(name, "memfd:weft") == NULL) continue;
    mappings[count].at = (char*)first;
    mappings[count++].bytes = end - first > kMostLooked ? kMostLooked : end - first;
  }
  fclose(maps);
  return count;
}

static void Overwrite(void) {
  const int count = FindMappings();
  for (const double start = MPI_Wtime(); count > 0 && MPI_Wtime() - start < kSeconds;) {
    const int which = (int)Draw((uint64_t)count);
    char* const page = mappings[which].at + Draw(mappings[which].bytes / kPage) * kPage;
    unsigned char resident;
    if (mincore(page, kPage, &resident) != 0 || !(resident & 1)) continue;
    for (int i = 0; i < 32; i++) *(volatile uint64_t*)(page + Draw(kPage / kLine) * kLine) += Draw(5) - 2;
  }
  _exit(0);
}

static void Need(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  printf("rank %d: %s: %s\n", world_rank, call, text);
  fflush(NULL);
  _exit(7);
}

static void Exchange(const char* from, char* to) {
  enum { kMessages = 4, kEach = 100000 };
  MPI_Request requests[2 * kMessages];
  const int length = Draw(2) ? 8 : 1 + (int)Draw(kBytes / 2);
  Need(MPI_Sendrecv(from, length, MPI_CHAR, Right(), 1, to, kBytes, MPI_CHAR, Left(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Sendrecv");
  for (int i = 0; i < kMessages; i++) {
    Need(MPI_Irecv(to + i * kEach, kEach, MPI_CHAR, Left(), 2, MPI_COMM_WORLD, &requests[i]), "MPI_Irecv");
    Need(MPI_Isend(from, i * kEach / kMessages, MPI_CHAR, Right(), 2, MPI_COMM_WORLD, &requests[kMessages + i]), "MPI_Isend");
  }
  Need(MPI_Waitall(2 * kMessages, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
}

static void Work(MPI_Win win, const char* from, char* to) {
  const int next = Right(), length = Draw(2) ? 8 : 1 + (int)Draw(100000);
  static const long one = 1, ones[100];
  const int longs = Draw(2) ? 1 : 100;  // few elements take other words than many
  long old;
  if (Draw(2) == 0) {
    Need(MPI_Win_fence(0, win), "MPI_Win_fence");
    Need(MPI_Put(from, length, MPI_CHAR, next, 0, length, MPI_CHAR, win), "MPI_Put");
    Need(MPI_Get(to, length, MPI_CHAR, Left(), kBytes / 2, length, MPI_CHAR, win), "MPI_Get");
    Need(MPI_Accumulate(ones, longs, MPI_LONG, next, kBytes - 1024, longs, MPI_LONG, MPI_SUM, win), "MPI_Accumulate");
    Need(MPI_Win_fence(0, win), "MPI_Win_fence");
    return;
  }
  Need(MPI_Win_lock(Draw(2) ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, next, 0, win), "MPI_Win_lock");
  Need(MPI_Put(from, length, MPI_CHAR, next, 0, length, MPI_CHAR, win), "MPI_Put");
  Need(MPI_Fetch_and_op(&one, &old, MPI_LONG, next, kBytes - 16, MPI_SUM, win), "MPI_Fetch_and_op");
  Need(MPI_Win_flush(next, win), "MPI_Win_flush");
  Need(MPI_Win_unlock(next, win), "MPI_Win_unlock");
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Win wins[2];
  char *allocated, *from = calloc(1, kBytes), *to = calloc(1, kBytes);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Win_create(calloc(1, kBytes), kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[0]);
  MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &wins[1]);
  for (int i = 0; i < 2; i++) MPI_Win_set_errhandler(wins[i], MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  state = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 0x9e3779b97f4a7c15u + 88172645463325252u;
  if (world_rank == 0 && fork() == 0) Overwrite();
  const double start = MPI_Wtime();
  for (int more = 1; more;) {
    more = MPI_Wtime() - start < kSeconds + kLonger;
    Need(MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
    for (int i = 0; i < 2 && more; i++) Work(wins[i], from, to);
    if (more) Exchange(from, to);
  }
  for (int i = 0; i < 2; i++) Need(MPI_Win_free(&wins[i]), "MPI_Win_free");
  return End();
}
