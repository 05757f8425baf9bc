/* While one thread receives or gets 64 MiB, calls of another thread return: one that begins when the first byte is there ends before the last byte is. */
#include <sched.h>
#include <stdatomic.h>

#include "threads.h"

enum { kBytes = 64 << 20, kMostRounds = 20 };

static volatile char* got;
static char* given;
static atomic_int over;
static MPI_Comm own;

/* It looks at bytes that another thread is receiving, which is what this is about. */
__attribute__((no_sanitize_thread)) static int HasCome(int byte) { return got[byte] != 0; }

static void* CallBetween(void* early) {
  while (!HasCome(0) && !over) sched_yield();
  int value = 0;
  CHECK_OK(MPI_Sendrecv_replace(&value, 1, MPI_INT, 0, 3, 0, 3, own, MPI_STATUS_IGNORE));
  *(int*)early = !HasCome(kBytes - 1);
  return NULL;
}

/* Whether the other thread's call came between once: it needs a processor at the right time. All pairs have as many rounds. */
static void ExpectCallsBetween(const char* what, void (*move)(int other, MPI_Win win), MPI_Win win) {
  int any = 0, round = 0;
  for (int all = 0; !all && round < kMostRounds; ++round) {
    pthread_t thread;
    int early = 0;
    memset((char*)got, 0, kBytes);
    over = 0;
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
    if (world_rank % 2 == 1) pthread_create(&thread, NULL, CallBetween, &early);
    move(world_rank ^ 1, win);
    over = 1;
    if (world_rank % 2 == 1) {
      pthread_join(thread, NULL);
      CHECK(memcmp((char*)got, given, kBytes) == 0);
      any |= early;
    } else {
      any = 1;
    }
    CHECK_OK(MPI_Allreduce(&any, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
  }
  if (!any && !MpichDeviates("may hold its lock meanwhile")) fprintf(stderr, "%s: no call of the other thread returned meanwhile\n", what);
  if (!MpichDeviates("may hold its lock meanwhile")) CHECK(any);
}

/* Each sends, too: on one host it then copies what it receives from where the other has it. */
static void Message(int other, MPI_Win win) {
  (void)win;
  CHECK_OK(MPI_Sendrecv(given, kBytes, MPI_BYTE, other, 1, (char*)got, kBytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void Get(int other, MPI_Win win) {
  if (world_rank % 2 == 0) return;
  CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win));
  CHECK_OK(MPI_Get((char*)got, kBytes, MPI_BYTE, other, 0, kBytes, MPI_BYTE, win));
  CHECK_OK(MPI_Win_unlock(other, win));
}

int main(int argc, char** argv) {
  MPI_Win win;
  char* memory;
  BeginThreads(&argc, &argv);
  if (world_size % 2 != 0) return End();
  MPI_Comm_dup(MPI_COMM_SELF, &own);
  given = malloc(kBytes);
  got = malloc(kBytes);
  for (size_t i = 0; i < kBytes; ++i) given[i] = (char)(1 + i % 97);
  ExpectCallsBetween("MPI_Sendrecv", Message, MPI_WIN_NULL);
  CHECK_OK(MPI_Win_create(given, kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  ExpectCallsBetween("MPI_Get from a window over malloc", Get, win);
  CHECK_OK(MPI_Win_free(&win));
  CHECK_OK(MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  CHECK_OK(MPI_Win_fence(0, win));
  memcpy(memory, given, kBytes);
  CHECK_OK(MPI_Win_fence(0, win));
  ExpectCallsBetween("MPI_Get from an allocated window", Get, win);
  CHECK_OK(MPI_Win_free(&win));
  MPI_Comm_free(&own);
  free(given);
  free((char*)got);
  return End();
}
