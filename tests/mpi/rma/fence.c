/* Fence epochs (MPI 4.0 section 12.5.1): Put and Get of many sizes between all ranks, several in an epoch, asserts, self. */
#include "tests/mpi/check.h"

static const int kSizes[] = {1, 8, 100, 4096, 16385, 65536, 300000};
enum { kMany = sizeof kSizes / sizeof kSizes[0], kMost = 300000, kRoom = 64 };

static void PutToRight(MPI_Win win, char* memory, char* buffer) {
  for (int i = 0; i < kMany; i++) {
    FillPattern(buffer, kSizes[i], world_rank, i);
    memset(memory, 0xee, kMost + 8);
    MPI_Win_fence(0, win);
    MPI_Put(buffer, kSizes[i], MPI_BYTE, Right(), 3, kSizes[i], MPI_BYTE, win);
    MPI_Win_fence(0, win);
    CHECK_PATTERN(memory + 3, kSizes[i], Left(), i);
    CHECK_EQ(memory[2], (char)0xee);
    CHECK_EQ(memory[3 + kSizes[i]], (char)0xee);
    MPI_Win_fence(0, win);
  }
}

static void GetFromRight(MPI_Win win, char* memory, char* buffer) {
  for (int i = 0; i < kMany; i++) {
    FillPattern(memory, kMost, world_rank, i);
    memset(buffer, 0xee, kMost);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Get(buffer, kSizes[i], MPI_BYTE, Right(), 0, kSizes[i], MPI_BYTE, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOPUT, win);
    CHECK_PATTERN(buffer, kSizes[i], Right(), i);
    if (kSizes[i] < kMost) CHECK_EQ(buffer[kSizes[i]], (char)0xee);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* Everyone puts a word into everyone's memory at his own place; 50 epochs back to back. */
static void AllToAll(void) {
  int *memory, values[50];
  MPI_Win win;
  MPI_Win_allocate(sizeof(int) * kRoom, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  for (int r = 0; r < world_size; r++) memory[r] = -1;
  MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
  for (int epoch = 0; epoch < 50; epoch++) {
    values[epoch] = world_rank * 1000 + epoch;
    for (int r = 0; r < world_size; r++) MPI_Put(&values[epoch], 1, MPI_INT, r, world_rank, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int r = 0; r < world_size; r++) CHECK_EQ(memory[r], r * 1000 + epoch);
    MPI_Win_fence(0, win);
  }
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  MPI_Win_free(&win);
  CHECK_EQ(win, MPI_WIN_NULL);
}

/* Windows whose size, displacement unit and presence differ from rank to rank. */
static void UnequalWindows(void) {
  double* memory = malloc(sizeof(double) * 100);
  const int mine = world_rank % 2 == 0;
  MPI_Win win;
  for (int i = 0; i < 100; i++) memory[i] = -1;
  MPI_Win_create(mine ? memory : NULL, mine ? sizeof(double) * 100 : 0, mine ? sizeof(double) : 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  double value = world_rank;
  MPI_Win_fence(0, win);
  for (int r = 0; r < world_size; r += 2) MPI_Put(&value, 1, MPI_DOUBLE, r, world_rank, 1, MPI_DOUBLE, win);
  MPI_Win_fence(0, win);
  for (int r = 0; r < world_size && mine; r++) CHECK_EQ(memory[r], r);
  MPI_Win_free(&win);
  free(memory);
}

/* One rank puts to another; behind the fence all get it from there, and behind the next fence one puts again: no operation is overtaken by one of a
 * third rank in the epoch behind its own. */
static void SeenByAThird(void) {
  static const int kInts[] = {2, 1024, 65536};
  int* memory = calloc(65536, sizeof(int));
  int* buffer = malloc(65536 * sizeof(int));
  MPI_Win win;
  MPI_Win_create(memory, 65536 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  for (int i = 0; i < 3; i++) {
    for (int epoch = 1; epoch <= (i < 2 ? 500 : 50); epoch++) {
      const int value = 1000 * (i + 1) + epoch, target = epoch % world_size, last = kInts[i] - 1;
      int got = 0;
      for (int k = 0; k <= last; k++) buffer[k] = value;
      MPI_Win_fence(0, win);
      if (world_rank == (epoch + 1) % world_size) MPI_Put(buffer, kInts[i], MPI_INT, target, 0, kInts[i], MPI_INT, win);
      MPI_Win_fence(0, win);
      MPI_Get(&got, 1, MPI_INT, target, last, 1, MPI_INT, win);
      MPI_Win_fence(0, win);
      CHECK_EQ(got, value);
    }
  }
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  MPI_Win_free(&win);
  free(memory);
  free(buffer);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  char *memory = malloc(kMost + 8), *buffer = malloc(kMost + 8);
  MPI_Win win;
  MPI_Win_create(memory, kMost + 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  PutToRight(win, memory, buffer);
  GetFromRight(win, memory, buffer);
  MPI_Win_free(&win);
  free(memory);
  free(buffer);
  AllToAll();
  UnequalWindows();
  SeenByAThird();
  return End();
}
