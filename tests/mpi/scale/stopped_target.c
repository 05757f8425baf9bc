/* Three ranks. Rank 0 is stopped before anybody has connected to it for one-sided operations. A thread of rank 1 puts to it, and waits for the connection
 * until rank 1 lets rank 0 go on. Its other thread and rank 2 exchange messages meanwhile. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/mpi/threads/threads.h"

enum { kExchanges = 200 };

static MPI_Win window;
static long memory[2];
static atomic_int putter, returned; /* the first: its thread's number */

/* Whether the thread is in poll(2), in which the library waits for the connection. */
static int IsInPoll(int thread) {
  char path[64];
  long call = -1;
  snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
  FILE* file = fopen(path, "r");
  if (file != NULL && fscanf(file, "%ld", &call) != 1) call = -1; /* "running" */
  if (file != NULL) fclose(file);
#ifdef SYS_poll
  if (call == SYS_poll) return 1;
#endif
  return call == SYS_ppoll;
}

static void* Put(void* unused) {
  const long value = 7;
  putter = (int)gettid();
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
  returned = 1;
  MPI_Win_unlock_all(window);
  return unused;
}

static int IsStopped(pid_t pid) {
  char path[64], state = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE* file = fopen(path, "r");
  if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 0;
  if (file != NULL) fclose(file);
  return state == 'T';
}

static void Exchange(int other, int* value) {
  MPI_Sendrecv_replace(value, 1, MPI_INT, other, 0, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  pthread_t thread;
  int pid = (int)getpid(), value = 0;
  BeginThreads(&argc, &argv);
  MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  if (world_rank == 1) Exchange(2, &value); /* they are connected before */
  if (world_rank == 2) Exchange(1, &value);
  MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) raise(SIGSTOP);
  if (world_rank == 1) {
    while (!IsStopped(pid)) usleep(1000);
    pthread_create(&thread, NULL, Put, NULL);
    while (putter == 0 || !IsInPoll(putter)) usleep(1000);
    for (int i = 0; i < kExchanges; ++i) Exchange(2, &value);
    CHECK(!returned);
    kill(pid, SIGCONT);
    pthread_join(thread, NULL);
  }
  if (world_rank == 2) {
    for (int i = 0; i < kExchanges; ++i) Exchange(1, &value);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) CHECK_EQ(memory[0], 7);
  MPI_Win_free(&window);
  return End();
}
