/* All ranks exchange messages of many lengths with all others. Each prints "rank R: host=B,copies=C" (ways.h). Arguments: seed, rounds (20), the round
 * from which on rank 1 may not read the memory of other processes any more. */
#include <string.h>

#include "tests/mpi/scale/ways.h"

static const int kLengths[] = {0, 1, 8, 16, 17, 40, 57, 1000, 4096, 8192, 8193, 65536, 131072, 131073, 300000, 2500000};
static unsigned state;

static unsigned Random(void) { return (state = state * 1103515245u + 12345u) >> 8; }

static unsigned char Byte(int from, int to, int round, size_t i) { return (unsigned char)(from * 7 + to * 13 + round * 31 + (int)(i * 5 + i / 251)); }

int main(int argc, char** argv) {
  int provided;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  Begin(&argc, &argv);
  Ways ways = OpenWays();
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
  PrintWays(&ways);
  free(requests);
  free(buffers);
  const int status = End();
  MPI_T_finalize();
  return status;
}
