/* Threads for the conformance programs: each runs `body(number)`; failures are counted under a lock. */
#ifndef TESTS_MPI_THREADS_THREADS_H_
#define TESTS_MPI_THREADS_THREADS_H_

#include <pthread.h>

#include "tests/mpi/check.h"

enum { kThreads = 4 };

static void (*thread_body)(int);
static void* RunThread(void* number) {
  thread_body((int)(long)number);
  return NULL;
}
static inline void InThreads(void (*body)(int)) {
  pthread_t threads[kThreads];
  thread_body = body;
  for (long i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, RunThread, (void*)i);
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
}

static inline void BeginThreads(int* argc, char*** argv) {
  int provided;
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
}

#endif /* TESTS_MPI_THREADS_THREADS_H_ */
