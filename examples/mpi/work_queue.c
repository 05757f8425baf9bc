/* work_queue [TASKS]: ranks take numbered tasks from a queue that is one counter at rank 0. MPI_Fetch_and_op takes the next number;
 * rank 0 works like the others and never answers anyone: the RNIC serves the counter (passive target). Task k counts the steps that
 * the Collatz sequence from k needs; the results go to rank 0's table by MPI_Put and are compared with a serial computation.
 *
 *   mpicc -O2 work_queue.c -o work_queue && mpiexec -n 4 ./work_queue
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int Collatz(long k) {
  int steps = 0;
  for (; k != 1; steps++) k = k % 2 == 0 ? k / 2 : 3 * k + 1;
  return steps;
}

/* Tasks differ in size, which is what a queue is for. */
static int Task(long number) {
  int most = 0;
  for (long k = number * 50 + 1; k <= (number + 1) * 50; k++) {
    const int steps = Collatz(k);
    if (steps > most) most = steps;
  }
  return most;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long tasks = argc > 1 ? atol(argv[1]) : 2000;
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  /* 1. Rank 0 gives memory: the counter, then a result for each task. The others give none. */
  long* queue;
  MPI_Win win;
  const MPI_Aint bytes = rank == 0 ? (MPI_Aint)sizeof(long) * (1 + tasks) : 0;
  MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &queue, &win);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
  if (rank == 0) {
    queue[0] = 0;
    for (long i = 1; i <= tasks; i++) queue[i] = -1;
    MPI_Win_sync(win);
  }
  MPI_Barrier(MPI_COMM_WORLD);

  /* 2. Take a number, do the task, put the result. The flush is for the number, which must be here; results may be on their way. */
  const long one = 1;
  long done = 0, number;
  for (;;) {
    MPI_Fetch_and_op(&one, &number, MPI_LONG, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
    if (number >= tasks) break;
    const long result = Task(number);
    MPI_Put(&result, 1, MPI_LONG, 0, 1 + number, 1, MPI_LONG, win);
    MPI_Win_flush_local(0, win);  /* `result` is about to go */
    done++;
  }
  MPI_Win_flush_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(win);

  /* 3. Every task was done once, and right. */
  long wrong = 0, total = 0;
  MPI_Reduce(&done, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    for (long i = 0; i < tasks; i++) wrong += queue[1 + i] != Task(i);
    printf("work_queue: %ld tasks on %d ranks, %ld of them at rank 0; %ld results are wrong\n", total, ranks, done, wrong);
    if (total != tasks) wrong++;
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
