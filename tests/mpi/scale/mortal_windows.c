/* Rank 1 dies while it holds the lock of rank 0's window, or at any time (mortal_windows HOW): `lock`, `accumulate`, `fence`, `together`, `pieces` and
 * `wait` are what the others are in, or come to, then. All of them go on, or are told with an error that it is gone; none waits for ever. The launcher lets
 * them live. Each prints "rank R: ..." and what became of the call. */
#define _DEFAULT_SOURCE
#include <signal.h>
#include <unistd.h>

#include "tests/mpi/check.h"

static void Die(void) {
  fflush(NULL);
  kill(getpid(), SIGKILL);
}

static void Say(const char* call, int code) {
  int class, length;
  char text[MPI_MAX_ERROR_STRING] = "success";
  MPI_Error_class(code, &class);
  if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
  printf("rank %d: %s: %s: %s\n", world_rank, call, class == MPI_SUCCESS ? "fine" : "an error", text);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  const char* how = argc > 1 ? argv[1] : "lock";
  long *memory, value = 1;
  MPI_Win win;
  MPI_Win_allocate(1 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(how, "lock") == 0) {
    if (world_rank == 1) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
      MPI_Put(&value, 8, MPI_BYTE, 0, 0, 8, MPI_BYTE, win);
      MPI_Win_flush(0, win);
    }
    /* Nobody asks before rank 1 has it. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 1) Die();
    int code = MPI_SUCCESS;
    for (int i = 0; i < 100 && code == MPI_SUCCESS; i++) {
      code = MPI_Win_lock(i % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win);
      if (code == MPI_SUCCESS) code = MPI_Win_unlock(0, win);
    }
    Say("MPI_Win_lock", code);
  } else if (strcmp(how, "accumulate") == 0) {
    /* 2INT has the lock of rank 0's accumulates; rank 1 dies in one of many. */
    static int pairs[1 << 16];
    MPI_Win_lock_all(0, win);
    if (world_rank == 1) alarm(1);
    int code = MPI_SUCCESS;
    for (const double start = MPI_Wtime(); (world_rank == 1 || MPI_Wtime() - start < 2.5) && code == MPI_SUCCESS;) {
      code = MPI_Accumulate(pairs, 1 << 15, MPI_2INT, 0, 0, 1 << 15, MPI_2INT, MPI_MAXLOC, win);
      if (code == MPI_SUCCESS) code = MPI_Win_flush(0, win);
    }
    Say("MPI_Accumulate", code);
  } else if (strcmp(how, "fence") == 0) {
    int code = MPI_Win_fence(0, win);
    for (int i = 0; code == MPI_SUCCESS; i++) {
      if (world_rank == 1 && i == 20) Die();
      MPI_Put(&value, 8, MPI_BYTE, (world_rank + 1) % world_size, 8 * world_rank, 8, MPI_BYTE, win);
      code = MPI_Win_fence(0, win);
    }
    Say("MPI_Win_fence", code);
  } else if (strcmp(how, "together") == 0) {
    /* For so many ranks that each counts, and tells nobody. Nobody ends before rank 2 has the error: that would end its fence, too. */
    const double start = MPI_Wtime();
    if (world_rank == 1) Die();
    const int code = MPI_Win_fence(0, win);
    Say("MPI_Win_fence", code);
    if (world_rank != 2) {
      MPI_Recv(NULL, 0, MPI_BYTE, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      printf("rank 2 had the error after %.3f s\n", MPI_Wtime() - start);
      for (int rank = 0; rank < world_size; rank++) {
        if (rank != 1 && rank != 2) MPI_Send(NULL, 0, MPI_BYTE, rank, 0, MPI_COMM_WORLD);
      }
    }
  } else if (strcmp(how, "pieces") == 0) {
    /* Small pieces of memory that is not shared, which the target carries out; rank 1 dies before that of one epoch, or in the middle of it. */
    enum { kPieces = 2000, kStride = 8 };
    static int words[kPieces];
    MPI_Datatype pieces;
    MPI_Win created;
    MPI_Type_vector(kPieces, 1, kStride, MPI_INT, &pieces);
    MPI_Type_commit(&pieces);
    MPI_Win_create(malloc(kPieces * kStride * sizeof(int)), kPieces * kStride * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &created);
    MPI_Win_set_errhandler(created, MPI_ERRORS_RETURN);
    int code = MPI_Win_fence(0, created);
    if (world_rank == 1) ualarm(300000, 0);
    for (int i = 0; code == MPI_SUCCESS; i++) {
      for (int target = 0; target < world_size && code == MPI_SUCCESS; target++) {
        code = MPI_Accumulate(words, kPieces, MPI_INT, target, 0, 1, pieces, MPI_SUM, created);
      }
      if (code == MPI_SUCCESS) code = MPI_Win_fence(0, created);
    }
    Say("MPI_Win_fence", code);
  } else {
    MPI_Group all;
    MPI_Win_get_group(win, &all);
    if (world_rank == 1) Die();
    int code = MPI_Win_post(all, 0, win);
    if (code == MPI_SUCCESS) code = MPI_Win_start(all, 0, win);
    if (code == MPI_SUCCESS) code = MPI_Win_complete(win);
    if (code == MPI_SUCCESS) code = MPI_Win_wait(win);
    Say("MPI_Win_complete", code);
  }
  fflush(NULL);
  _exit(0);
}
