/* All other ranks work on rank 0's window with short and long messages, while memory or descriptors are wanting somewhere: whatever fails says
 * so, nobody who lives is declared dead, and what is tried again succeeds. The first argument is how many errors a rank may
 * see. Prints "no window" where already that cannot be made. */
#include "tests/mpi/check.h"

enum { kShort = 100, kEpochs = 4, kLongs = 1200 }; /* 9,600 bytes: more than a new connection takes in a message */

static int errors, most_errors;

/* Whether the call is to be made again. */
static int Again(const char* call, int code) {
  int class, length;
  char text[MPI_MAX_ERROR_STRING] = "";
  if (code == MPI_SUCCESS) return 0;
  MPI_Error_class(code, &class);
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "rank %d: %s: %s\n", world_rank, call, text);
  if (class != MPI_ERR_NO_MEM && class != MPI_ERR_OTHER) REPORT("%s: error class %d (%s)", call, class, text);
  if (++errors > most_errors) {
    REPORT("more than %d errors", most_errors);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 1;
}

#define INSIST(call) \
  while (Again(#call, call)) continue

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  most_errors = argc > 1 ? atoi(argv[1]) : 0;
  long* memory;
  MPI_Win win;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const MPI_Aint bytes = sizeof(long) * (1 + kLongs);
  if (MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win) != MPI_SUCCESS) {
    if (world_rank == 0) puts("no window");
    return End();
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  memset(memory, 0, (size_t)bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  long ones[kLongs];
  for (int i = 0; i < kLongs; i++) ones[i] = 1;
  MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
  if (world_rank != 0) {
    for (int i = 0; i < kShort; i++) INSIST(MPI_Accumulate(ones, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
    INSIST(MPI_Win_flush(0, win));
    INSIST(MPI_Accumulate(ones, kLongs, MPI_LONG, 0, 1, kLongs, MPI_LONG, MPI_SUM, win));
    INSIST(MPI_Win_flush(0, win));
  }
  MPI_Win_unlock_all(win);
  /* An epoch that cannot be ended goes on, and the end is tried again. Those of one operation are a single message. */
  for (int epoch = 0; epoch < 2 * kEpochs && world_rank != 0; epoch++) {
    INSIST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    for (int i = 0; i < epoch % 2 + 1; i++) INSIST(MPI_Accumulate(ones, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
    INSIST(MPI_Win_unlock(0, win));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) {
    CHECK_EQ(memory[0], (kShort + 3 * kEpochs) * (world_size - 1));
    for (int i = 1; i <= kLongs; i++) CHECK_EQ(memory[i], world_size - 1);
  }
  MPI_Win_free(&win);
  return End();
}
