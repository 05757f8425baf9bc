/* Which way data go between ranks of one host, and how to close one. */
#ifndef TESTS_MPI_SCALE_WAYS_H_
#define TESTS_MPI_SCALE_WAYS_H_

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/mpi/check.h"

/* From now on this rank may not read the memory of other processes, as under a policy that forbids it. */
static inline void ForbidReadingProcesses(void) {
  struct sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
  CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* "rank R: host=B,copies=C" since OpenWays: bytes that it sent through memory of the host, and pieces that it copied from the memory of other ranks. */
typedef struct {
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handles[2];
} Ways;

static inline Ways OpenWays(void) {
  Ways ways;
  int host, copies, count;
  CHECK_EQ(MPI_T_pvar_get_index("host_bytes_sent", MPI_T_PVAR_CLASS_COUNTER, &host), MPI_SUCCESS);
  CHECK_EQ(MPI_T_pvar_get_index("host_copies", MPI_T_PVAR_CLASS_COUNTER, &copies), MPI_SUCCESS);
  MPI_T_pvar_session_create(&ways.session);
  MPI_T_pvar_handle_alloc(ways.session, host, NULL, &ways.handles[0], &count);
  MPI_T_pvar_handle_alloc(ways.session, copies, NULL, &ways.handles[1], &count);
  return ways;
}

static inline void PrintWays(Ways* ways) {
  unsigned long long values[2] = {0, 0};
  for (int i = 0; i < 2; i++) MPI_T_pvar_read(ways->session, ways->handles[i], &values[i]);
  printf("rank %d: host=%llu,copies=%llu\n", world_rank, values[0], values[1]);
  fflush(stdout);
  MPI_T_pvar_session_free(&ways->session);
}

#endif /* TESTS_MPI_SCALE_WAYS_H_ */
