/* One thread waits for the lock of a window that its target holds until another thread's Put behind an accumulate, in
 * another window of the same target, has arrived: the one that waits holds up nobody, however it asked. */
#define _GNU_SOURCE /* gettid() */
#include <stdatomic.h>
#include <unistd.h>

#include "tests/mpi/threads/threads.h"

enum { kLong = 100000, kWarm = 200, kWays = 3, kTimes = 2 * kWays, kPolling = 10 };

static MPI_Win data, locked;

static _Atomic long asking; /* the thread that does */

static void* AskForLock(void* way) {
  const long one = 1;
  const int all = *(int*)way == 2;
  asking = gettid();
  if (all) MPI_Win_lock_all(0, locked);
  else MPI_Win_lock(*(int*)way == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, locked);
  MPI_Put(&one, 1, MPI_LONG, 0, world_rank, 1, MPI_LONG, locked);
  if (all) MPI_Win_unlock_all(locked);
  else MPI_Win_unlock(0, locked);
  return NULL;
}

/* Until the thread whose id comes into *thread waits: it sleeps in 5 looks in a row 1 ms apart, which one that contends for a lock does not, or it has
 * used kPolling ticks of the processor, as in a library that polls. */
static void AwaitWaiting(_Atomic long* thread) {
  char path[64], line[512], state;
  unsigned long user, system;
  for (int looks = 0; looks < 5; usleep(1000)) {
    if (*thread == 0) continue;
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", *thread);
    FILE* file = fopen(path, "r");
    CHECK(file != NULL && fgets(line, sizeof line, file) != NULL);
    fclose(file);
    CHECK_EQ(sscanf(strrchr(line, ')') + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state, &user, &system), 3);
    if (user + system >= kPolling) break;
    looks = state == 'S' ? looks + 1 : 0;
  }
  *thread = 0;
}

/* Two integers at once are a message; then there are many at first, for as many messages to be in flight as ever. One integer may need none, on a
 * connection that has had few. */
static void PutBehindAccumulate(int count, const char* values) {
  static const long one[2] = {1, 0};
  pthread_t waiting;
  for (int i = 0; i < kWarm; i++) MPI_Accumulate(one, count, MPI_LONG, 0, 0, count, MPI_LONG, MPI_SUM, data);
  MPI_Win_flush(0, data);
  for (int time = 0; time < kTimes; time++) {
    int way = time / 2;
    MPI_Barrier(MPI_COMM_WORLD); /* the target has the lock */
    MPI_Accumulate(one, count, MPI_LONG, 0, 0, count, MPI_LONG, MPI_SUM, data);
    pthread_create(&waiting, NULL, AskForLock, &way);
    AwaitWaiting(&asking); /* it has asked: nothing else is to be waited for */
    if (time % 2 == 0) MPI_Put(values, kLong, MPI_BYTE, 0, 2 * sizeof(long), kLong, MPI_BYTE, data);
    MPI_Win_flush(0, data);
    MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    pthread_join(waiting, NULL);
    MPI_Barrier(MPI_COMM_WORLD); /* it had the lock, which the target takes again */
  }
}

int main(int argc, char** argv) {
  BeginThreads(&argc, &argv);
  char *memory, *values = malloc(kLong);
  long* counters;
  memset(values, 7, kLong);
  MPI_Win_allocate(2 * sizeof(long) + kLong, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &data);
  MPI_Win_allocate((MPI_Aint)sizeof(long) * world_size, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &counters, &locked);
  memset(memory, 0, 2 * sizeof(long) + kLong);
  memset(counters, 0, sizeof(long) * (size_t)world_size);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, data);
  if (world_rank == 1) {
    PutBehindAccumulate(1, values);
    PutBehindAccumulate(2, values);
  } else {
    for (int time = 0; time < 2 * kTimes; time++) {
      if (world_rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, locked);
      MPI_Barrier(MPI_COMM_WORLD);
      if (world_rank == 0) {
        if (world_size > 1) MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Win_unlock(0, locked);
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  MPI_Win_unlock_all(data);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0 && world_size > 1) {
    CHECK_EQ(*(long*)(void*)memory, 2 * (kWarm + kTimes));
    CHECK_EQ(memcmp(memory + 2 * sizeof(long), values, kLong), 0);
    CHECK_EQ(counters[1], 1);
  }
  MPI_Win_free(&locked);
  MPI_Win_free(&data);
  free(values);
  return End();
}
