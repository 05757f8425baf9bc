/* Put and Get of many small pieces at the origin, at the target and at both, in windows over memory of malloc and of MPI_Alloc_mem: transposed matrices, pieces
 * that lie far apart, and pieces with a hole between them in which there is no memory. What lies between the pieces stays as it is. */
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

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  int *const memory = malloc(kInts * sizeof(int)), *const own = malloc(kInts * sizeof(int)), *of_alloc_mem;
  Transpose(memory, own);
  MPI_Alloc_mem(kInts * sizeof(int), MPI_INFO_NULL, &of_alloc_mem);
  Transpose(of_alloc_mem, own);
  MPI_Free_mem(of_alloc_mem);
  FarApart();
  AroundAHole();
  free(memory);
  free(own);
  return End();
}
