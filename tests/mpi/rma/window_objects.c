/* Windows as objects: attributes, names, info, groups, error handlers, several at once, creation on a part of the ranks. */
#include "tests/mpi/check.h"

static void Attributes(void) {
  long memory[10];
  MPI_Win win;
  MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  void* base;
  MPI_Aint* size;
  int *number, found;
  MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &found);
  CHECK(found && base == memory);
  MPI_Win_get_attr(win, MPI_WIN_SIZE, &size, &found);
  CHECK(found && *size == sizeof memory);
  MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &number, &found);
  CHECK(found && *number == 8);
  MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &number, &found);
  CHECK(found && *number == MPI_WIN_FLAVOR_CREATE);
  MPI_Win_get_attr(win, MPI_WIN_MODEL, &number, &found);
  CHECK(found && (*number == MPI_WIN_UNIFIED || *number == MPI_WIN_SEPARATE));
  char name[MPI_MAX_OBJECT_NAME];
  int length;
  MPI_Win_get_name(win, name, &length);
  CHECK_STR(name, "");
  MPI_Win_set_name(win, "field");
  MPI_Win_get_name(win, name, &length);
  CHECK_STR(name, "field");
  CHECK_EQ(MPI_Win_f2c(MPI_Win_c2f(win)), win);
  MPI_Info info;
  MPI_Win_get_info(win, &info);
  CHECK(info != MPI_INFO_NULL);
  MPI_Info_free(&info);
  MPI_Errhandler handler;
  MPI_Win_get_errhandler(win, &handler);
  CHECK_EQ(handler, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
  MPI_Win_free(&win);
}

/* Operations on several windows in overlapping epochs do not mix. */
static void Several(void) {
  int *memory[4], values[4];
  MPI_Win wins[4];
  for (int w = 0; w < 4; w++) {
    MPI_Win_allocate(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory[w], &wins[w]);
    *memory[w] = -1;
  }
  for (int w = 0; w < 4; w++) MPI_Win_fence(0, wins[w]);
  for (int w = 3; w >= 0; w--) {
    values[w] = world_rank * 10 + w;
    MPI_Put(&values[w], 1, MPI_INT, Right(), 0, 1, MPI_INT, wins[w]);
  }
  for (int w = 0; w < 4; w++) MPI_Win_fence(0, wins[w]);
  for (int w = 0; w < 4; w++) CHECK_EQ(*memory[w], Left() * 10 + w);
  for (int w = 0; w < 4; w++) MPI_Win_free(&wins[(w + 2) % 4]);
}

/* Ranks in a window are those of its communicator. */
static void OnReversedHalves(void) {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half);
  int rank, size, *memory;
  MPI_Comm_rank(half, &rank);
  MPI_Comm_size(half, &size);
  MPI_Win win;
  MPI_Win_allocate(sizeof(int) * 64, sizeof(int), MPI_INFO_NULL, half, &memory, &win);
  MPI_Win_fence(0, win);
  for (int r = 0; r < size; r++) MPI_Put(&world_rank, 1, MPI_INT, r, rank, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  for (int r = 0; r < size; r++) {
    const int highest = world_size - 1 - (world_size - 1 - world_rank) % 2;  /* the half's highest rank in the world */
    CHECK_EQ(memory[r], highest - 2 * r);
  }
  MPI_Comm_free(&half);  /* the window lives on */
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
}

/* Made and freed often; large and empty. */
static void Often(void) {
  for (int i = 0; i < 30; i++) {
    MPI_Win win;
    int* memory;
    MPI_Win_allocate(i % 5 * 100000, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_fence(0, win);
    if (i % 5 > 0) MPI_Put(&i, 1, MPI_INT, Right(), i % 5 * 100000 - 4, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    if (i % 5 > 0) CHECK_EQ(memory[i % 5 * 25000 - 1], i);
    MPI_Win_free(&win);
  }
  void* memory;
  MPI_Alloc_mem(1000, MPI_INFO_NULL, &memory);
  memset(memory, 1, 1000);
  MPI_Win win;
  MPI_Win_create(memory, 1000, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
  char byte = 0;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
  MPI_Get(&byte, 1, MPI_BYTE, 0, 999, 1, MPI_BYTE, win);
  MPI_Win_unlock(0, win);
  CHECK_EQ(byte, 1);
  MPI_Win_free(&win);
  MPI_Free_mem(memory);
}

/* Windows of a few bytes. */
static void Small(void) {
  for (int bytes = 1; bytes < 20; bytes++) {
    char *memory, out[20], in[20];
    MPI_Win win;
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    FillPattern(out, bytes, world_rank, bytes);
    memset(memory, 0, bytes);
    MPI_Win_fence(0, win);
    MPI_Put(out, bytes, MPI_BYTE, Right(), 0, bytes, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    CHECK_PATTERN(memory, bytes, Left(), bytes);
    MPI_Get(in, bytes, MPI_BYTE, Right(), 0, bytes, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    CHECK_PATTERN(in, bytes, world_rank, bytes);
    MPI_Win_free(&win);
  }
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  Attributes();
  Several();
  OnReversedHalves();
  Often();
  if (!MpichDeviates("a Put into a window of MPI_Win_allocate below 16 bytes goes astray")) Small();
  return End();
}
