/* Dynamic windows (MPI 4.0 section 12.2.4): memory attached and detached while the window lives, addressed by MPI_Get_address. */
#include "tests/mpi/check.h"

/* Pieces of one array that are attached one by one are memory like any other: an operation may span them, large or small. */
static void AcrossRegions(void) {
  enum { kCount = 60000, kCut = 100 };
  static int memory[kCount], out[kCount], in[kCount];
  MPI_Win win;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_attach(win, memory, sizeof(int) * kCut);
  MPI_Win_attach(win, memory + kCut, sizeof(int) * (kCount - kCut));
  MPI_Aint address, theirs;
  MPI_Get_address(memory, &address);
  MPI_Sendrecv(&address, 1, MPI_AINT, Left(), 0, &theirs, 1, MPI_AINT, Right(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const int counts[] = {2 * kCut, kCount};
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < kCount; i++) out[i] = 10 * i + k;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, Right(), 0, win);
    MPI_Put(out, counts[k], MPI_INT, Right(), theirs, counts[k], MPI_INT, win);
    MPI_Win_flush(Right(), win);
    MPI_Get(in, counts[k], MPI_INT, Right(), theirs, counts[k], MPI_INT, win);
    MPI_Accumulate(out, 2, MPI_INT, Right(), MPI_Aint_add(theirs, (kCut - 1) * (MPI_Aint)sizeof(int)), 2, MPI_INT, MPI_REPLACE, win);
    MPI_Win_unlock(Right(), win);
    for (int i = 0; i < counts[k]; i++) CHECK_EQ(in[i], out[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(memory[kCut - 1], out[0]);
    CHECK_EQ(memory[kCut], out[1]);
    CHECK_EQ(memory[kCut + 1], out[kCut + 1]);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Win_detach(win, memory);
  MPI_Win_detach(win, memory + kCut);
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  AcrossRegions();
  enum { kPieces = 5, kCount = 1000 };
  MPI_Win win;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  int *pieces[kPieces], *flavor, found;
  MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &found);
  CHECK(found && *flavor == MPI_WIN_FLAVOR_DYNAMIC);
  MPI_Aint addresses[kPieces], theirs[kPieces];
  for (int p = 0; p < kPieces; p++) {
    pieces[p] = malloc(sizeof(int) * kCount);
    for (int i = 0; i < kCount; i++) pieces[p][i] = -1;
    MPI_Win_attach(win, pieces[p], sizeof(int) * kCount);
    MPI_Get_address(pieces[p], &addresses[p]);
  }
  MPI_Sendrecv(addresses, kPieces, MPI_AINT, Left(), 0, theirs, kPieces, MPI_AINT, Right(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int out[kPieces][kCount], in[kCount];
  MPI_Win_fence(0, win);
  for (int p = 0; p < kPieces; p++) {
    for (int i = 0; i < kCount; i++) out[p][i] = world_rank * 10000 + p * 1000 + i;
    MPI_Put(out[p], kCount, MPI_INT, Right(), theirs[p], kCount, MPI_INT, win);
  }
  MPI_Win_fence(0, win);
  for (int p = 0; p < kPieces; p++) {
    for (int i = 0; i < kCount; i++) CHECK_EQ(pieces[p][i], Left() * 10000 + p * 1000 + i);
  }
  /* One piece goes, another comes; the rest stays usable, inside a piece too. */
  MPI_Win_detach(win, pieces[2]);
  int* fresh = malloc(sizeof(int) * kCount);
  for (int i = 0; i < kCount; i++) fresh[i] = i;
  MPI_Win_attach(win, fresh, sizeof(int) * kCount);
  MPI_Get_address(fresh, &addresses[2]);
  MPI_Sendrecv(addresses, kPieces, MPI_AINT, Left(), 0, theirs, kPieces, MPI_AINT, Right(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int one = 1, was = -1;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, Right(), 0, win);
  MPI_Get(in, kCount, MPI_INT, Right(), theirs[2], kCount, MPI_INT, win);
  MPI_Win_flush(Right(), win);
  for (int i = 0; i < kCount; i++) CHECK_EQ(in[i], i);
  MPI_Fetch_and_op(&one, &was, MPI_INT, Right(), MPI_Aint_add(theirs[2], 40), MPI_SUM, win);
  MPI_Accumulate(&one, 1, MPI_INT, Right(), MPI_Aint_add(theirs[3], 80), 1, MPI_INT, MPI_SUM, win);
  MPI_Win_unlock(Right(), win);
  CHECK_EQ(was, 10);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
  CHECK_EQ(fresh[10], 11);
  CHECK_EQ(pieces[3][20], Left() * 10000 + 3020 + 1);
  MPI_Win_unlock(world_rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int p = 0; p < kPieces; p++) {
    if (p != 2) MPI_Win_detach(win, pieces[p]);
    free(pieces[p]);
  }
  MPI_Win_detach(win, fresh);
  free(fresh);
  MPI_Win_free(&win);
  return End();
}
