/* With MPI_THREAD_MULTIPLE: reduction functions of the program's ask MPI for the type's size, in two threads that reduce over communicators
 * of their own. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { kRounds = 200, kCount = 100 };

static int rank, size, failures;
static MPI_Op op;

static void add(void *in, void *inout, int *count, MPI_Datatype *type) {
  int bytes;
  MPI_Type_size(*type, &bytes);
  for (int i = 0; i < *count * bytes / (int)sizeof(int); ++i) ((int *)inout)[i] += ((int *)in)[i];
}

static void *reduce(void *comm) {
  int a[kCount], b[kCount];
  for (int round = 0; round < kRounds; ++round) {
    MPI_Request request;
    for (int i = 0; i < kCount; ++i) a[i] = rank + round;
    if (round % 2 == 0) {
      MPI_Allreduce(a, b, kCount, MPI_INT, op, *(MPI_Comm *)comm);
    } else {
      MPI_Iallreduce(a, b, kCount, MPI_INT, op, *(MPI_Comm *)comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < kCount; ++i) {
      if (b[i] != size * (size - 1) / 2 + size * round) __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
    }
  }
  return NULL;
}

int main(int argc, char **argv) {
  int provided, sum;
  MPI_Comm comms[2];
  pthread_t thread;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) return 2;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Op_create(add, 1, &op);
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  pthread_create(&thread, NULL, reduce, &comms[0]);
  reduce(&comms[1]);
  pthread_join(thread, NULL);
  int one = 1;
  MPI_Reduce_local(&one, &(int){1}, 1, MPI_INT, op);
  MPI_Reduce(&failures, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&comms[i]);
  MPI_Op_free(&op);
  MPI_Finalize();
  return rank == 0 && sum != 0;
}
