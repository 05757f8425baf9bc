/* Children of fork(2) that end in each way, or stay, while the parent exchanges short and long messages, collectives and one-sided operations with all
 * others: a child disturbs nobody, and nothing of the parent's is the child's to end. */
#define _DEFAULT_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/mpi/check.h"

enum { kLong = 1 << 16, kWays = 4 };

static pid_t Fork(int way) {
  fflush(NULL);
  const pid_t child = fork();
  if (child != 0) return child;
  if (way == 0) _exit(0);
  if (way == 1) exit(0); /* with what the libraries do at the end of a process */
  if (way == 2) execlp("true", "true", (char*)NULL);
  pause();
  _exit(1);
}

static void Exchange(MPI_Win window, const int* memory, int round) {
  static int out[kLong], in[kLong];
  const int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
  for (int count = 1; count <= kLong; count *= 16) {
    for (int i = 0; i < count; ++i) out[i] = 100 * world_rank + round + i;
    CHECK_OK(MPI_Sendrecv(out, count, MPI_INT, right, round, in, count, MPI_INT, left, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    int wrong = 0;
    for (int i = 0; i < count; ++i) wrong += in[i] != 100 * left + round + i;
    CHECK_EQ(wrong, 0);
  }
  int sum = 0, one = 1;
  CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQ(sum, world_size);
  CHECK_OK(MPI_Bcast(out, kLong, MPI_INT, round % world_size, MPI_COMM_WORLD));
  const int value = 10 * world_rank + round;
  CHECK_OK(MPI_Win_fence(0, window));
  CHECK_OK(MPI_Put(&value, 1, MPI_INT, right, 0, 1, MPI_INT, window));
  CHECK_OK(MPI_Win_fence(0, window));
  CHECK_EQ(memory[0], 10 * left + round);
  CHECK_OK(MPI_Win_fence(0, window));
}

static int* of_alloc_mem;
static pid_t parent;

/* As a destructor that runs in a child, too. */
static void FreeInChild(void) {
  if (getpid() != parent) MPI_Free_mem(of_alloc_mem);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  int *memory, own[1];
  MPI_Win allocated, created, over_alloc_mem;
  parent = getpid();
  atexit(FreeInChild);
  CHECK_OK(MPI_Alloc_mem(sizeof(int), MPI_INFO_NULL, &of_alloc_mem));
  CHECK_OK(MPI_Win_create(of_alloc_mem, sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &over_alloc_mem));
  CHECK_OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &allocated));
  CHECK_OK(MPI_Win_create(own, sizeof own, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &created));
  pid_t children[kWays];
  for (int round = 0; round < kWays; ++round) {
    Exchange(allocated, memory, round);
    /* One rank alone, and all at once. */
    children[round] = world_rank == round % world_size || round % 2 != 0 ? Fork((round + world_rank) % kWays) : 0;
    Exchange(over_alloc_mem, of_alloc_mem, round);
    Exchange(created, own, round);
    Exchange(allocated, memory, round);
  }
  for (int round = 0; round < kWays; ++round) {
    if (children[round] == 0) continue;
    int status = 0;
    const int stays = (round + world_rank) % kWays == 3;
    if (stays) kill(children[round], SIGKILL);
    CHECK_EQ(waitpid(children[round], &status, 0), children[round]);
    CHECK_EQ(status, stays ? SIGKILL : 0);
  }
  Exchange(allocated, memory, kWays);
  Exchange(created, own, kWays);
  Exchange(over_alloc_mem, of_alloc_mem, kWays);
  CHECK_OK(MPI_Win_free(&over_alloc_mem));
  MPI_Free_mem(of_alloc_mem);
  CHECK_OK(MPI_Win_free(&created));
  CHECK_OK(MPI_Win_free(&allocated));
  return End();
}
