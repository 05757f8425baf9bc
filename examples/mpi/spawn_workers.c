/* spawn_workers [WORKERS [TASKS]]: a master that starts its workers itself, deals out tasks to whoever is free, and sends them home. The workers
 * are the same program, in a job of their own; they know that they are by their parent. A task is to find the most steps that the Collatz sequences of fifty
 * numbers need; the results are compared with a serial computation.
 *
 *   mpicc -O2 spawn_workers.c -o spawn_workers && mpiexec -n 1 ./spawn_workers 3
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kTask = 1, kResult = 2, kGoHome = 3 };

static int Task(long number) {
  int most = 0;
  for (long first = number * 50 + 1; first <= (number + 1) * 50; first++) {
    int steps = 0;
    for (long k = first; k != 1; steps++) k = k % 2 == 0 ? k / 2 : 3 * k + 1;
    if (steps > most) most = steps;
  }
  return most;
}

/* Tells of the task that it did last, and gets another, until there is none. */
static void Work(MPI_Comm master) {
  for (;;) {
    long task[2]; /* number, result */
    MPI_Status status;
    MPI_Recv(task, 1, MPI_LONG, 0, MPI_ANY_TAG, master, &status);
    if (status.MPI_TAG == kGoHome) return;
    task[1] = Task(task[0]);
    MPI_Send(task, 2, MPI_LONG, 0, kResult, master);
  }
}

static long Deal(MPI_Comm workers, int count, long tasks) {
  long next = 0, wrong = 0;
  int busy = 0;
  for (int worker = 0; worker < count && next < tasks; worker++, next++, busy++) MPI_Send(&next, 1, MPI_LONG, worker, kTask, workers);
  while (busy > 0) {
    long done[2];
    MPI_Status status;
    MPI_Recv(done, 2, MPI_LONG, MPI_ANY_SOURCE, kResult, workers, &status);
    wrong += done[1] != Task(done[0]);
    busy--;
    if (next == tasks) continue;
    MPI_Send(&next, 1, MPI_LONG, status.MPI_SOURCE, kTask, workers);
    next++;
    busy++;
  }
  for (int worker = 0; worker < count; worker++) MPI_Send(NULL, 0, MPI_LONG, worker, kGoHome, workers);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm master, workers;
  MPI_Comm_get_parent(&master);
  if (master != MPI_COMM_NULL) {
    Work(master);
    MPI_Comm_disconnect(&master);
    MPI_Finalize();
    return 0;
  }

  /* 1. The words for the workers are of no use here; MPI_ARGV_NULL stands for none. All are started, or the call fails. Each rank has its own. */
  const int count = argc > 1 ? atoi(argv[1]) : 3;
  const long tasks = argc > 2 ? atol(argv[2]) : 500;
  MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, count, MPI_INFO_NULL, 0, MPI_COMM_SELF, &workers, MPI_ERRCODES_IGNORE);

  /* 2. In the intercommunicator the workers' ranks are 0 to count - 1, and the master's is 0 for them. */
  const long wrong = Deal(workers, count, tasks);

  /* 3. Waits until they are done with it, too. */
  MPI_Comm_disconnect(&workers);
  printf("spawn_workers: %ld tasks by %d workers; %ld results are wrong\n", tasks, count, wrong);
  MPI_Finalize();
  return wrong != 0;
}
