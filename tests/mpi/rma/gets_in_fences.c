/* Gets in epochs of fences, one after the other, by one rank, by all, and by ranks that change from epoch to epoch; each rank writes into its window between
 * two fences. What was got is from before, and no rank passes a fence that another one has not come to. */
#include <stdint.h>

#include "tests/mpi/check.h"

enum { kMost = 150000, kEpochs = 40, kTries = 3 };
static const int kSizes[] = {1, 4000, 8192, 8193, 40000, 131072, 131073, kMost};
enum { kMany = sizeof kSizes / sizeof kSizes[0] };

/* The same numbers at each rank. */
static uint64_t state;
static int Random(int below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int)((state >> 33) % (unsigned)below);
}

enum Who { kFirst, kAll, kRank, kSome, kKinds };

/* The rank that `rank` gets from in the next epoch; -1: none. */
static int TargetOf(enum Who who, int epoch, int rank) {
  const int chosen = Random(4), target = Random(world_size);
  switch (who) {
    case kFirst: return rank == 0 ? world_size - 1 : -1;
    case kAll: return (rank + 1) % world_size;
    case kRank: return rank == epoch / 8 % world_size ? target : -1;
    default: return chosen == 0 ? -1 : target;
  }
}

/* `separate`: the windows are written into in epochs of their own, between two fences. */
static void Epochs(enum Who who, int bytes, int separate, MPI_Win win, unsigned char* memory, unsigned char* got) {
  FillPattern(memory, (size_t)bytes, world_rank, 0);
  MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
  for (int epoch = 0, written = 0; epoch < kEpochs; epoch++) {
    int target = -1;
    for (int rank = 0; rank < world_size; rank++) {
      const int one = TargetOf(who, epoch, rank);
      if (rank == world_rank) target = one;
    }
    memset(got, 0xee, kMost);
    if (target >= 0) MPI_Get(got, bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, win);
    if (target >= 0 && epoch % 8 == 7) MPI_Get(got + bytes / 2, bytes - bytes / 2, MPI_BYTE, target, bytes / 2, bytes - bytes / 2, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    if (separate) FillPattern(memory, (size_t)bytes, world_rank, epoch + 1);
    if (target >= 0) CHECK_PATTERN(got, (size_t)bytes, target, written);
    if (bytes < kMost) CHECK_EQ(got[bytes], 0xee);
    if (separate) written = epoch + 1;
    if (separate) MPI_Win_fence(0, win);
  }
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

/* A rank's counter of the epochs that it has come to is never behind, and one epoch ahead at most. */
static void NoRankIsAhead(void) {
  enum { kCount = 500 };
  int *count, other = 0;
  MPI_Win win;
  MPI_Win_allocate(sizeof *count, sizeof *count, MPI_INFO_NULL, MPI_COMM_WORLD, &count, &win);
  *count = 0;
  MPI_Win_fence(0, win);
  for (int epoch = 1; epoch <= kCount; epoch++) {
    if (world_rank == 0) MPI_Get(&other, 1, MPI_INT, world_size - 1, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    if (world_rank == 0) CHECK_EQ(other, epoch - 1);
    *count = epoch;
    MPI_Win_fence(0, win);
  }
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  unsigned char *memory, *got = malloc(kMost);
  MPI_Win win;
  MPI_Win_allocate(kMost, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  for (int try = 0; try < kTries; try++) {
    state = (uint64_t)try;
    for (int who = 0; who < kKinds; who++) {
      const int bytes = kSizes[Random(kMany)];
      Epochs((enum Who)who, bytes, Random(2), win, memory, got);
    }
  }
  MPI_Win_free(&win);
  /* Two windows, whose fences come in turns. */
  MPI_Win wins[2];
  unsigned char* memories[2];
  for (int i = 0; i < 2; i++) {
    MPI_Win_allocate(kMost, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memories[i], &wins[i]);
    FillPattern(memories[i], kMost, world_rank, i);
  }
  for (int i = 0; i < 2; i++) MPI_Win_fence(0, wins[i]);
  for (int epoch = 0; epoch < 5 * kEpochs; epoch++) {
    const int i = epoch % 7 < 5 ? 0 : 1, bytes = kSizes[epoch / 10 % kMany];
    memset(got, 0xee, (size_t)bytes);
    if (world_rank == 0) MPI_Get(got, bytes, MPI_BYTE, world_size - 1, 0, bytes, MPI_BYTE, wins[i]);
    MPI_Win_fence(0, wins[i]);
    if (world_rank == 0) CHECK_PATTERN(got, (size_t)bytes, world_size - 1, i);
  }
  for (int i = 0; i < 2; i++) MPI_Win_free(&wins[i]);
  NoRankIsAhead();
  free(got);
  return End();
}
