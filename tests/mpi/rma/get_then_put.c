/* Puts behind Gets in one epoch (MPI 4.0 section 12.7): some RNICs tell that a Write is done before the Read in front of it. What was
 * got must be all there when the epoch, a flush or the request says so. */
#include "tests/mpi/check.h"

enum { kPieces = 6, kBytes = 100000, kRounds = 3 };

static unsigned char* got[kPieces];
static unsigned char* out;

/* The target's window: kPieces to be read, kPieces to be written. */
static void Start(MPI_Win win, int target, int round, MPI_Request requests[kPieces]) {
  for (int i = 0; i < kPieces; i++) {
    const int small = i % 3 == 2 ? 8 : kBytes;
    memset(got[i], 0, kBytes);
    if (requests != NULL) {
      MPI_Rget(got[i], kBytes, MPI_BYTE, target, (MPI_Aint)i * kBytes, kBytes, MPI_BYTE, win, &requests[i]);
    } else {
      MPI_Get(got[i], kBytes, MPI_BYTE, target, (MPI_Aint)i * kBytes, kBytes, MPI_BYTE, win);
    }
    FillPattern(out + (size_t)i * kBytes, kBytes, world_rank, round + i);
    MPI_Put(out + (size_t)i * kBytes, small, MPI_BYTE, target, (MPI_Aint)(kPieces + i) * kBytes, small, MPI_BYTE, win);
  }
}

static void CheckGot(int i, int target) { CHECK_PATTERN(got[i], kBytes, target, i); }

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  if (MpichDeviates("what was got may come after MPI_Win_flush_local, and now and then after the fence")) return End();
  unsigned char* memory;
  MPI_Win win;
  MPI_Win_allocate(2 * kPieces * kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  out = malloc(kPieces * kBytes);
  for (int i = 0; i < kPieces; i++) {
    got[i] = malloc(kBytes);
    FillPattern(memory + (size_t)i * kBytes, kBytes, world_rank, i);
  }
  const int target = Right();
  for (int round = 0; round < kRounds; round++) {
    MPI_Request requests[kPieces];
    MPI_Win_fence(0, win);
    Start(win, target, round, NULL);
    MPI_Win_fence(0, win);
    for (int i = 0; i < kPieces; i++) {
      const size_t written = i % 3 == 2 ? 8 : kBytes;
      CheckGot(i, target);
      CHECK_PATTERN(memory + (size_t)(kPieces + i) * kBytes, written, Left(), round + i);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);

    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    Start(win, target, round, NULL);
    MPI_Win_flush_local(target, win);
    for (int i = 0; i < kPieces; i++) CheckGot(i, target);
    Start(win, target, round, requests);
    for (int done = 0; done < kPieces; done++) {
      int i;
      MPI_Waitany(kPieces, requests, &i, MPI_STATUS_IGNORE);
      CheckGot(i, target);
    }
    MPI_Win_unlock(target, win);
  }
  MPI_Win_free(&win);
  for (int i = 0; i < kPieces; i++) free(got[i]);
  free(out);
  return End();
}
