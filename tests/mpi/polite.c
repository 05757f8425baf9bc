/* For the reference library only: MPICH's ranks spin, and with more ranks than cores each waits for the other's time slice (12 ms for
 * a barrier of four ranks on two cores). Preloaded, this gives the core away after a poll that found nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void* worker) {
  static unsigned (*next)(void*);
  if (next == NULL) next = (unsigned (*)(void*))dlsym(RTLD_NEXT, "ucp_worker_progress");
  unsigned moved = next(worker);
  if (moved == 0) sched_yield();
  return moved;
}
