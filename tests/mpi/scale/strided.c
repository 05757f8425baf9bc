/* Put, Get and accumulates of many small pieces at the origin, at the target and at both, in windows over memory of malloc and of MPI_Alloc_mem: transposed
 * matrices, pieces that lie far apart, and pieces with a hole between them in which there is no memory. What lies between the pieces stays as it is.
 * Operations of one epoch take effect in their order, and what an epoch brings is there for each rank in the next one. Each rank prints
 * "rank R: deferred=D, of alloc_mem D": so many operations were left to their targets, which are for windows over memory of malloc and of MPI_Alloc_mem. */
#define _DEFAULT_SOURCE
#include <sys/mman.h>

#include "tests/mpi/check.h"

enum { kSide = 300, kInts = kSide * kSide, kApart = 2048, kFar = 200, kPage = 4096, kInPage = 16 };

static int Value(int rank, int i) { return rank * 1000000 + i; }

static void Fill(int* memory, int rank, int ints) {
  for (int i = 0; i < ints; i++) memory[i] = Value(rank, i);
}

/* The columns of a matrix, one after the other. */
static MPI_Datatype Columns(void) {
  MPI_Datatype column, columns;
  MPI_Type_vector(kSide, 1, kSide, MPI_INT, &column);
  MPI_Type_create_hvector(kSide, 1, sizeof(int), column, &columns);
  MPI_Type_commit(&columns);
  MPI_Type_free(&column);
  return columns;
}

static int Wrong(const int* memory, int rank, int transposed) {
  int wrong = 0;
  for (int i = 0; i < kInts; i++) wrong += memory[i] != Value(rank, transposed ? i % kSide * kSide + i / kSide : i);
  return wrong;
}

static void Transpose(int* memory, int* own) {
  MPI_Win win;
  MPI_Datatype columns = Columns();
  CHECK_OK(MPI_Win_create(memory, kInts * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  /* Pieces at the origin, at the target, at both: 1, 2, 3. */
  for (int sides = 0; sides < 4; sides++) {
    for (int get = 0; get < 2; get++) {
      MPI_Datatype here = sides & 1 ? columns : MPI_INT, there = sides & 2 ? columns : MPI_INT;
      const int many_here = sides & 1 ? 1 : kInts, many_there = sides & 2 ? 1 : kInts;
      Fill(get ? memory : own, world_rank, kInts);
      memset(get ? own : memory, 0, kInts * sizeof(int));
      MPI_Win_fence(0, win);
      if (get) {
        MPI_Get(own, many_here, here, Right(), 0, many_there, there, win);
      } else {
        MPI_Put(own, many_here, here, Right(), 0, many_there, there, win);
      }
      MPI_Win_fence(0, win);
      CHECK_EQ(Wrong(get ? own : memory, get ? Right() : Left(), sides == 1 || sides == 2), 0);
    }
  }
  MPI_Type_free(&columns);
  MPI_Win_free(&win);
}

static void FarApart(void) {
  int *const memory = malloc(kFar * kApart * sizeof(int)), own[kFar];
  MPI_Win win;
  MPI_Datatype far;
  MPI_Type_vector(kFar, 1, kApart, MPI_INT, &far);
  MPI_Type_commit(&far);
  CHECK_OK(MPI_Win_create(memory, kFar * kApart * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  Fill(memory, world_rank, kFar * kApart);
  MPI_Win_fence(0, win);
  MPI_Get(own, kFar, MPI_INT, Right(), 0, 1, far, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < kFar; i++) CHECK_EQ(own[i], Value(Right(), i * kApart));
  MPI_Type_free(&far);
  MPI_Win_free(&win);
  free(memory);
}

static void AroundAHole(void) {
  char* const memory = mmap(NULL, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(memory + kPage, kPage);
  int own[2 * kInPage], places[2 * kInPage];
  MPI_Win win;
  MPI_Datatype around;
  for (int i = 0; i < 2 * kInPage; i++) {
    places[i] = (i < kInPage ? 0 : 2 * kPage / (int)sizeof(int) - 2 * kInPage) + 2 * i;
    ((int*)memory)[places[i]] = Value(world_rank, i);
  }
  MPI_Type_create_indexed_block(2 * kInPage, 1, places, MPI_INT, &around);
  MPI_Type_commit(&around);
  CHECK_OK(MPI_Win_create(memory, 3 * kPage, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI_Win_fence(0, win);
  MPI_Get(own, 2 * kInPage, MPI_INT, Right(), 0, 1, around, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < 2 * kInPage; i++) CHECK_EQ(own[i], Value(Right(), i));
  MPI_Type_free(&around);
  MPI_Win_free(&win);
  munmap(memory, 3 * kPage);
}

enum { kPieces = 1000, kStride = 5, kWords = kPieces * kStride };

static MPI_Datatype Pieces(MPI_Datatype of, int count) {
  MPI_Datatype pieces;
  MPI_Type_vector(count, 1, kStride, of, &pieces);
  MPI_Type_commit(&pieces);
  return pieces;
}

/* Each is behind the one before, on the same words. */
static void InOrder(MPI_Win win, int* memory) {
  MPI_Datatype pieces = Pieces(MPI_INT, kPieces);
  static int one[kPieces], two[kPieces], found[kWords], all[kWords];
  for (int i = 0; i < kPieces; i++) one[i] = i, two[i] = 2 * i;
  for (int i = 0; i < kWords; i++) all[i] = -i;
  memset(memory, 0, kWords * sizeof(int));
  MPI_Win_fence(0, win);
  MPI_Put(one, kPieces, MPI_INT, Right(), 0, 1, pieces, win);
  MPI_Get(found, kPieces, MPI_INT, Right(), 0, 1, pieces, win);
  MPI_Put(two, kPieces, MPI_INT, Right(), 0, 1, pieces, win);
  MPI_Accumulate(one, kPieces, MPI_INT, Right(), 0, 1, pieces, MPI_SUM, win);
  MPI_Put(all, 3, MPI_INT, Right(), 0, 3, MPI_INT, win); /* little in one piece, behind small pieces */
  MPI_Win_fence(0, win);
  for (int i = 0; i < kPieces; i++) {
    CHECK_EQ(found[i], i);
    CHECK_EQ(memory[kStride * i], 3 * i);
    CHECK_EQ(memory[kStride * i + 1], i == 0 ? -1 : 0);
  }
  MPI_Win_fence(0, win);
  MPI_Put(one, kPieces, MPI_INT, Right(), 0, 1, pieces, win);
  MPI_Put(all, kWords, MPI_INT, Right(), 0, kWords, MPI_INT, win); /* much */
  int added = 100, before = 0;
  MPI_Accumulate(one, kPieces, MPI_INT, Right(), 0, 1, pieces, MPI_SUM, win);
  MPI_Fetch_and_op(&added, &before, MPI_INT, Right(), kStride, MPI_SUM, win);
  MPI_Win_fence(0, win);
  CHECK_EQ(before, 1 - kStride);
  for (int i = 0; i < kWords; i++) CHECK_EQ(memory[i], (i % kStride == 0 ? i / kStride : 0) - i + (i == kStride ? 100 : 0));
  MPI_Type_free(&pieces);
}

/* All add to the same words of rank 0, in pieces and in one. */
static void FromAll(MPI_Win win, int* memory) {
  MPI_Datatype pieces = Pieces(MPI_INT, kPieces), pairs = Pieces(MPI_2INT, kPieces / 4);
  static int ones[kWords], best[kPieces / 4][2];
  for (int i = 0; i < kWords; i++) ones[i] = 1, memory[i] = 0;
  for (int i = 0; i < kPieces / 4; i++) best[i][0] = i + world_rank, best[i][1] = world_rank;
  MPI_Win_fence(0, win);
  for (int i = 0; i < 10; i++) {
    MPI_Accumulate(ones, kPieces, MPI_INT, 0, 0, 1, pieces, MPI_SUM, win);
    if (i == 5) MPI_Accumulate(ones, kWords, MPI_INT, 0, 0, kWords, MPI_INT, MPI_SUM, win);
  }
  MPI_Win_fence(0, win);
  for (int i = 0; world_rank == 0 && i < kWords; i++) CHECK_EQ(memory[i], world_size * (i % kStride == 0 ? 11 : 1));
  memset(memory, 0, kWords * sizeof(int));
  MPI_Win_fence(0, win);
  MPI_Accumulate(best, kPieces / 4, MPI_2INT, 0, 0, 1, pairs, MPI_MAXLOC, win);
  MPI_Win_fence(0, win);
  for (int i = 0; world_rank == 0 && i < kPieces / 4; i++) {
    CHECK_EQ(memory[2 * kStride * i], i + world_size - 1);
    CHECK_EQ(memory[2 * kStride * i + 1], world_size - 1);
    CHECK_EQ(memory[2 * kStride * i + 2], 0);
  }
  MPI_Type_free(&pieces);
  MPI_Type_free(&pairs);
}

/* What one rank puts, all get in the next epoch, the target among them. */
static void SeenByAll(MPI_Win win, int* memory) {
  MPI_Datatype pieces = Pieces(MPI_INT, kPieces);
  static int words[kPieces];
  for (int round = 1; round <= 100; round++) {
    const int target = round % world_size, origin = (round + 1) % world_size;
    int last = 0, copied = 0;
    for (int i = 0; i < kPieces; i++) words[i] = round + i;
    MPI_Win_fence(0, win);
    if (world_rank == origin) MPI_Put(words, kPieces, MPI_INT, target, 0, 1, pieces, win);
    MPI_Win_fence(0, win);
    if (world_rank == target) CHECK_EQ(memory[kStride * (kPieces - 1)], round + kPieces - 1);
    MPI_Get(&last, 1, MPI_INT, target, kStride * (kPieces - 1), 1, MPI_INT, win);
    MPI_Get(&copied, 1, MPI_INT, target, kStride, 1, MPI_INT, win);
    CHECK_OK(MPI_Win_fence(0, win));
    CHECK_EQ(last, round + kPieces - 1);
    CHECK_EQ(copied, round + 1);
  }
  MPI_Type_free(&pieces);
}

/* MPI_Win_complete waits for nothing that its target still has to do. */
static void ByPostAndStart(MPI_Win win, int* memory) {
  MPI_Datatype pieces = Pieces(MPI_INT, kPieces);
  MPI_Group all, origin, target;
  const int left = Left(), right = Right();
  static int words[kPieces];
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &left, &origin);
  MPI_Group_incl(all, 1, &right, &target);
  for (int round = 1; round <= 20; round++) {
    for (int i = 0; i < kPieces; i++) words[i] = 1000 * round + world_rank + i;
    memset(memory, 0, kWords * sizeof(int));
    MPI_Win_post(origin, 0, win);
    MPI_Win_start(target, 0, win);
    MPI_Put(words, kPieces, MPI_INT, right, 0, 1, pieces, win);
    MPI_Accumulate(words, kPieces, MPI_INT, right, 0, 1, pieces, MPI_SUM, win);
    MPI_Win_complete(win);
    MPI_Sendrecv(NULL, 0, MPI_INT, right, 0, NULL, 0, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_OK(MPI_Win_wait(win));
    for (int i = 0; i < kPieces; i++) CHECK_EQ(memory[kStride * i], 2 * (1000 * round + left + i));
    for (int i = 1; i < kStride; i++) CHECK_EQ(memory[i], 0);
  }
  MPI_Group_free(&all);
  MPI_Group_free(&origin);
  MPI_Group_free(&target);
  MPI_Type_free(&pieces);
}

/* More than is kept for a target. */
static void Much(void) {
  enum { kMany = 5000000 };
  const size_t bytes = (size_t)kMany * 2 * sizeof(int);
  int *const memory = calloc(1, bytes), *const own = malloc(bytes / 2);
  MPI_Datatype every_other;
  MPI_Win win;
  MPI_Type_vector(kMany, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  MPI_Win_create(memory, (MPI_Aint)bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  for (int i = 0; i < kMany; i++) own[i] = i;
  MPI_Win_fence(0, win);
  if (world_rank == 0) MPI_Put(own, kMany, MPI_INT, 1, 0, 1, every_other, win);
  MPI_Win_fence(0, win);
  int wrong = 0;
  for (int i = 0; world_rank == 1 && i < kMany; i++) wrong += memory[2 * i] != i || memory[2 * i + 1] != 0;
  CHECK_EQ(wrong, 0);
  MPI_Type_free(&every_other);
  MPI_Win_free(&win);
  free(memory);
  free(own);
}

static void Epochs(int* memory) {
  MPI_Win win;
  MPI_Win_create(memory, kWords * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  InOrder(win, memory);
  FromAll(win, memory);
  SeenByAll(win, memory);
  ByPostAndStart(win, memory);
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  int provided, deferred, count;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  Begin(&argc, &argv);
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  unsigned long long before = 0, between = 0, after = 0;
  CHECK_EQ(MPI_T_pvar_get_index("deferred_operations", MPI_T_PVAR_CLASS_COUNTER, &deferred), MPI_SUCCESS);
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_handle_alloc(session, deferred, NULL, &handle, &count);
  MPI_T_pvar_read(session, handle, &before);
  int *const memory = malloc(kInts * sizeof(int)), *const own = malloc(kInts * sizeof(int)), *of_alloc_mem;
  Transpose(memory, own);
  MPI_Alloc_mem(kInts * sizeof(int), MPI_INFO_NULL, &of_alloc_mem);
  MPI_T_pvar_read(session, handle, &between);
  Transpose(of_alloc_mem, own);
  MPI_Free_mem(of_alloc_mem);
  MPI_T_pvar_read(session, handle, &after);
  printf("rank %d: deferred=%llu, of alloc_mem %llu\n", world_rank, between - before, after - between);
  Epochs(memory);
  Much();
  FarApart();
  AroundAHole();
  free(memory);
  free(own);
  MPI_T_pvar_session_free(&session);
  const int status = End();
  MPI_T_finalize();
  return status;
}
