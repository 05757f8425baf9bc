/* All ranks exchange messages of many lengths with all others. Each prints "rank R: host=B,copies=C": bytes that it sent through memory of the host,
 * and pieces that it copied from the memory of other ranks. Arguments: seed, rounds (20), the round from which on rank 1 may not read the memory of
 * other processes any more. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/mpi/check.h"

static const int kLengths[] = {0, 1, 8, 16, 17, 40, 57, 1000, 4096, 8192, 8193, 65536, 131072, 131073, 300000, 2500000};
static unsigned state;

static unsigned Random(void) { return (state = state * 1103515245u + 12345u) >> 8; }

static unsigned char Byte(int from, int to, int round, size_t i) { return (unsigned char)(from * 7 + to * 13 + round * 31 + (int)(i * 5 + i / 251)); }

static void ForbidReadingProcesses(void) {
  struct sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
  CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

int main(int argc, char** argv) {
  int provided;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  Begin(&argc, &argv);
  int host, copies, count;
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handles[2];
  CHECK_EQ(MPI_T_pvar_get_index("host_bytes_sent", MPI_T_PVAR_CLASS_COUNTER, &host), MPI_SUCCESS);
  CHECK_EQ(MPI_T_pvar_get_index("host_copies", MPI_T_PVAR_CLASS_COUNTER, &copies), MPI_SUCCESS);
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_handle_alloc(session, host, NULL, &handles[0], &count);
  MPI_T_pvar_handle_alloc(session, copies, NULL, &handles[1], &count);

  const int rounds = argc > 2 ? atoi(argv[2]) : 20, forbid_at = argc > 3 ? atoi(argv[3]) : -1;
  state = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  MPI_Request* requests = malloc(sizeof(MPI_Request) * 2 * (size_t)world_size);
  unsigned char** buffers = calloc(2 * (size_t)world_size, sizeof *buffers);
  for (int round = 0; round < rounds; round++) {
    if (round == forbid_at && world_rank == 1) ForbidReadingProcesses();
    const int length = kLengths[Random() % (sizeof kLengths / sizeof *kLengths)]; /* the same at all */
    const int receive_pass = (int)(Random() % 2);
    int posted = 0;
    for (int pass = 0; pass < 2; pass++) {
      for (int i = 1; i < world_size; i++) {
        const int peer = (world_rank + i) % world_size;
        unsigned char** buffer = &buffers[2 * peer + (pass == receive_pass)];
        *buffer = malloc((size_t)length + 1);
        if (pass == receive_pass) {
          memset(*buffer, 0, (size_t)length + 1);
          MPI_Irecv(*buffer, length, MPI_BYTE, peer, round, MPI_COMM_WORLD, &requests[posted++]);
        } else {
          for (int at = 0; at < length; at++) (*buffer)[at] = Byte(world_rank, peer, round, (size_t)at);
          MPI_Isend(*buffer, length, MPI_BYTE, peer, round, MPI_COMM_WORLD, &requests[posted++]);
        }
      }
    }
    MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < world_size; peer++) {
      if (peer == world_rank) continue;
      const unsigned char* got = buffers[2 * peer + 1];
      int wrong = 0;
      for (int at = 0; at < length; at++) wrong += got[at] != Byte(peer, world_rank, round, (size_t)at);
      CHECK_EQ(wrong, 0);
      free(buffers[2 * peer]);
      free(buffers[2 * peer + 1]);
    }
  }
  unsigned long long values[2] = {0, 0};
  for (int i = 0; i < 2; i++) MPI_T_pvar_read(session, handles[i], &values[i]);
  printf("rank %d: host=%llu,copies=%llu\n", world_rank, values[0], values[1]);
  fflush(stdout);
  MPI_T_pvar_session_free(&session);
  free(requests);
  free(buffers);
  const int status = End();
  MPI_T_finalize();
  return status;
}
