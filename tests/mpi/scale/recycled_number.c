/* recycled_number HOW: rank 1 dies, and another process gets its number, with memory at the same address as rank 1's window. Rank 0 puts to
 * rank 1, gets from it (`put`, `get`) or asks for the lock that rank 1 had (`lock`). Prints "rank 0: call: class C after S s" and "the other
 * process: N bytes changed"; "cannot choose a number": only root may. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/mpi/check.h"

enum { kBytes = 65536, kTries = 1000 };

static char *memory, from[kBytes];

/* A child with that number. It writes a byte when its memory is filled, and says what changed when the other pipe is closed. */
static pid_t StartAs(pid_t number, int filled, const int* until) {
  struct clone_args arguments;
  pid_t child = -1;
  for (int i = 0; i < kTries && child < 0; i++) {
    memset(&arguments, 0, sizeof arguments);
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = (unsigned long)&number;
    arguments.set_tid_size = 1;
    child = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child < 0 && errno != EEXIST) return -1;
    if (child < 0) usleep(10000); /* its parent has not noticed yet */
  }
  if (child != 0) return child;
  close(until[1]);
  memset(memory, 5, kBytes);
  char byte = 0;
  int changed = 0;
  (void)!write(filled, &byte, 1);
  (void)!read(until[0], &byte, 1);
  for (int i = 0; i < kBytes; i++) changed += memory[i] != 5;
  printf("the other process: %d bytes changed\n", changed);
  fflush(NULL);
  _exit(0);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  const char* how = argc > 1 ? argv[1] : "put";
  const size_t bytes = argc > 2 ? (size_t)atoi(argv[2]) : kBytes;
  MPI_Win win;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  /* Where nothing is, and ThreadSanitizer has room for memory of programs. */
  memory = mmap((void*)0x7e9000000000, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  MPI_Win_create(memory, kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  int number = getpid();
  MPI_Bcast(&number, 1, MPI_INT, 1, MPI_COMM_WORLD);
  const int locks = strcmp(how, "lock") == 0;
  if (locks && world_rank == 1) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(from, 1, MPI_BYTE, 0, 0, 1, MPI_BYTE, win);
    MPI_Win_flush(0, win);
  } else if (!locks) {
    MPI_Win_lock_all(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 1) raise(SIGKILL);
  int filled[2], until[2];
  CHECK(pipe(filled) == 0 && pipe(until) == 0);
  const pid_t child = StartAs((pid_t)number, filled[1], until);
  if (child < 0) {
    printf("cannot choose a number: %s\n", strerror(errno));
    fflush(NULL);
    _exit(0);
  }
  char byte;
  CHECK_EQ(read(filled[0], &byte, 1), 1);
  int code, class;
  const double start = MPI_Wtime();
  if (locks) {
    code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
  } else {
    code = strcmp(how, "put") == 0 ? MPI_Put(from, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, win)
                                   : MPI_Get(from, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, win);
    if (code == MPI_SUCCESS) code = MPI_Win_flush(1, win);
  }
  MPI_Error_class(code, &class);
  printf("rank 0: %s: class %d (gone is %d) after %.2f s\n", how, class, MPIX_ERR_PROC_FAILED, MPI_Wtime() - start);
  fflush(NULL);
  close(until[1]);
  waitpid(child, NULL, 0);
  _exit(0);
}
