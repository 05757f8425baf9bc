/* All ranks but rank 1 put and accumulate many small pieces at rank 1, which has unmapped some memory of its window. That is an error of rank 1's call that
 * ends the epoch, which names it; nobody is killed, memory that is there has what was put to it, and the window can be used and freed. */
#define _DEFAULT_SOURCE
#include <sys/mman.h>

#include "tests/mpi/check.h"

enum { kPage = 4096, kInPage = kPage / sizeof(int), kPieces = 300, kStride = 8, kWords = 16 * kInPage, kGone = 6 * kInPage };

static int words[kPieces];
static MPI_Datatype pieces;
static MPI_Group all, target, origins;

/* At word `at` of rank 1. The code that rank 1's end of the epoch returns. */
static int FenceEpoch(MPI_Win win, int at) {
  MPI_Win_fence(0, win);
  if (world_rank != 1) MPI_Put(words, kPieces, MPI_INT, 1, at, 1, pieces, win);
  return MPI_Win_fence(0, win);
}

static int AccumulateEpoch(MPI_Win win, int at) {
  MPI_Win_fence(0, win);
  if (world_rank != 1) MPI_Accumulate(words, kPieces, MPI_INT, 1, at, 1, pieces, MPI_REPLACE, win);
  return MPI_Win_fence(0, win);
}

static int StartEpoch(MPI_Win win, int at) {
  if (world_rank == 1) {
    MPI_Win_post(origins, 0, win);
    return MPI_Win_wait(win);
  }
  MPI_Win_start(target, 0, win);
  MPI_Put(words, kPieces, MPI_INT, 1, at, 1, pieces, win);
  return MPI_Win_complete(win);
}

int main(int argc, char** argv) {
  int (*const epochs[])(MPI_Win, int) = {FenceEpoch, AccumulateEpoch, StartEpoch};
  const int one = 1;
  MPI_Win win;
  Begin(&argc, &argv);
  int* const memory = mmap(NULL, kWords * sizeof(int), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &one, &target);
  MPI_Group_difference(all, target, &origins);
  MPI_Type_vector(kPieces, 1, kStride, MPI_INT, &pieces);
  MPI_Type_commit(&pieces);
  MPI_Win_create(memory, kWords * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  for (int epoch = 0; epoch < 3; epoch++) {
    for (int i = 0; i < kPieces; i++) words[i] = 1000 * epoch + i + 1;
    CHECK_OK(epochs[epoch](win, 0));
    if (world_rank == 1) {
      for (int i = 0; i < kPieces; i++) CHECK_EQ(memory[kStride * i], words[i]);
      munmap(memory + kGone, kPage);
    }
    const int code = epochs[epoch](win, kGone - kInPage);
    if (world_rank != 1) {
      CHECK_EQ(code, MPI_SUCCESS);
    } else {
      char text[MPI_MAX_ERROR_STRING] = "";
      int length;
      CHECK_CLASS(code, MPI_ERR_RMA_RANGE);
      MPI_Error_string(code, text, &length);
      CHECK(strstr(text, "not mapped") != NULL);
      mmap(memory + kGone, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    for (int i = 0; i < kPieces; i++) words[i] = -i;
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(epochs[epoch](win, kGone - kInPage));
    for (int i = 0; world_rank == 1 && i < kPieces; i++) CHECK_EQ(memory[kGone - kInPage + kStride * i], -i);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Win_free(&win);
  MPI_Type_free(&pieces);
  MPI_Group_free(&all);
  MPI_Group_free(&target);
  MPI_Group_free(&origins);
  return End();
}
