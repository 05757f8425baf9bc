/* growth: exchanges a message between all pairs of ranks and puts into a window of each, so that all that the library keeps for a pair is there. Then each rank
 * gets from all in fences. Rank 0 prints "started at S", seconds of CLOCK_MONOTONIC when all ranks were through MPI_Init, "gets=U": us of such a fence, and
 * "memory=K,tables=T,waits=W": KiB of a rank on average, what ranks share divided among them (Linux: Pss), and of its page tables; and how often a rank slept
 * until it was through MPI_Init, as it does for each question to the launcher. Last, "each=K,each_tables=T": the same of one communicator more, after
 * collectives on it. */
#define _GNU_SOURCE
#include <sys/resource.h>
#include <time.h>

#include "tests/mpi/check.h"

/* The value of NAME in a file of lines "NAME: NUMBER kB". */
static double Kilobytes(const char* path, const char* name) {
  char line[256];
  double value = -1;
  FILE* file = fopen(path, "r");
  CHECK(file != NULL);
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) value = atof(line + strlen(name));
  }
  fclose(file);
  CHECK(value >= 0);
  return value;
}

/* Where a sanitizer keeps what it knows of the program's memory (x86-64; compiler-rt's tsan_platform.h and asan_mapping.h), which grows with the time, too. */
static int IsOfSanitizer(unsigned long address) {
#if defined(__SANITIZE_THREAD__)
  return (address >= 0x010000000000 && address < 0x550000000000) || (address >= 0x568000000000 && address < 0x7b0000000000);
#elif defined(__SANITIZE_ADDRESS__)
  return address >= 0x00007fff8000 && address < 0x10007fff8000;
#else
  (void)address;
  return 0;
#endif
}

/* KiB of this process, what it shares divided among those that have it (Linux: Pss). */
static double Memory(void) {
  char line[4096];
  double kilobytes = 0;
  int counts = 0;
  FILE* file = fopen("/proc/self/smaps", "r");
  CHECK(file != NULL);
  while (fgets(line, sizeof line, file) != NULL) {
    unsigned long from, to;
    if (sscanf(line, "%lx-%lx ", &from, &to) == 2) counts = !IsOfSanitizer(from);
    if (counts && strncmp(line, "Pss:", 4) == 0) kilobytes += atof(line + 4);
  }
  fclose(file);
  return kilobytes;
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  MPI_Barrier(MPI_COMM_WORLD);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (world_rank == 0) printf("started at %ld.%09ld\n", (long)now.tv_sec, now.tv_nsec);

  const size_t size = (size_t)world_size;
  long *out = calloc(size, sizeof(long)), *in = calloc(size, sizeof(long)), *memory;
  MPI_Request* requests = malloc(2 * size * sizeof(MPI_Request));
  for (int rank = 0; rank < world_size; rank++) {
    out[rank] = 1000 * world_rank + rank;
    MPI_Irecv(&in[rank], 1, MPI_LONG, rank, 0, MPI_COMM_WORLD, &requests[rank]);
  }
  for (int rank = 0; rank < world_size; rank++) MPI_Isend(&out[rank], 1, MPI_LONG, rank, 0, MPI_COMM_WORLD, &requests[world_size + rank]);
  MPI_Waitall(2 * world_size, requests, MPI_STATUSES_IGNORE);
  for (int rank = 0; rank < world_size; rank++) CHECK_EQ(in[rank], 1000 * rank + world_rank);

  MPI_Win window;
  MPI_Win_allocate((MPI_Aint)(size * sizeof(long)), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Win_fence(0, window);
  for (int rank = 0; rank < world_size; rank++) MPI_Put(&out[rank], 1, MPI_LONG, rank, world_rank, 1, MPI_LONG, window);
  MPI_Win_fence(0, window);
  for (int rank = 0; rank < world_size; rank++) CHECK_EQ(memory[rank], in[rank]);

  enum { kFences = 4 };
  const double begin = MPI_Wtime();
  for (int i = 0; i < kFences; i++) {
    memset(in, 0, size * sizeof(long));
    for (int rank = 0; rank < world_size; rank++) MPI_Get(&in[rank], 1, MPI_LONG, rank, world_rank, 1, MPI_LONG, window);
    MPI_Win_fence(0, window);
    for (int rank = 0; rank < world_size; rank++) CHECK_EQ(in[rank], out[rank]);
  }
  if (world_rank == 0) printf("gets=%.0f\n", 1e6 * (MPI_Wtime() - begin) / kFences);

  MPI_Barrier(MPI_COMM_WORLD); /* none is gone while another looks at what they share */
  double mine[3] = {Memory(), Kilobytes("/proc/self/status", "VmPTE:"), (double)usage.ru_nvcsw}, all[3];
  MPI_Reduce(mine, all, 3, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (world_rank == 0) printf("memory=%.0f,tables=%.0f,waits=%.0f\n", all[0] / world_size, all[1] / world_size, all[2] / world_size);

  enum { kCommunicators = 16, kTurns = 8, kNumbers = 5 };
  MPI_Comm communicators[kCommunicators];
  long* all_numbers = malloc(kNumbers * size * sizeof(long));
  for (int i = 0; i < kCommunicators; i++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &communicators[i]);
    for (int turn = 0; turn < kTurns; turn++) {
      const long numbers[kNumbers] = {world_rank, turn};
      MPI_Allgather(numbers, kNumbers, MPI_LONG, all_numbers, kNumbers, MPI_LONG, communicators[i]);
      for (int rank = 0; rank < world_size; rank++) CHECK_EQ(all_numbers[kNumbers * rank], rank);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  double more[2] = {Memory() - mine[0], Kilobytes("/proc/self/status", "VmPTE:") - mine[1]};
  MPI_Reduce(more, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (world_rank == 0) printf("each=%.1f,each_tables=%.1f\n", all[0] / world_size / kCommunicators, all[1] / world_size / kCommunicators);
  for (int i = 0; i < kCommunicators; i++) MPI_Comm_free(&communicators[i]);
  free(all_numbers);
  fflush(stdout);
  MPI_Win_free(&window);
  free(requests);
  free(in);
  free(out);
  return End();
}
