/* Each rank gives each a block, of many lengths: by MPI_Alltoall and in place, of contiguous data or, at some ranks, of data with gaps. Each prints
 * "rank R: host=B,copies=C" (ways.h). Arguments: rounds (60), the round from which on rank 1 may not read the memory of other processes any more. */
#include <string.h>

#include "tests/mpi/scale/ways.h"

static const int kWords[] = {1, 100, 1024, 2047, 2048, 4096, 16383, 16384, 30000, 100000};

static int Word(int from, int to, int round, int i) { return from * 1000003 + to * 10007 + round * 101 + i * 7; }

/* `count` words in each of the blocks; `gap` words between two of a block. */
static void Fill(int* blocks, int count, int gap, int round, int receive) {
  for (int rank = 0; rank < world_size; rank++) {
    for (int i = 0; i < count; i++) {
      blocks[((size_t)rank * (size_t)count + (size_t)i) * (size_t)gap] = receive ? -1 : Word(world_rank, rank, round, i);
    }
  }
}

int main(int argc, char** argv) {
  int provided;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  Begin(&argc, &argv);
  Ways ways = OpenWays();
  const int rounds = argc > 1 ? atoi(argv[1]) : 60, forbid_at = argc > 2 ? atoi(argv[2]) : -1;
  MPI_Datatype one, spread;
  MPI_Type_vector(1, 1, 1, MPI_INT, &one);
  MPI_Type_create_resized(one, 0, 2 * (MPI_Aint)sizeof(int), &spread); /* each second word */
  MPI_Type_commit(&spread);
  for (int round = 0; round < rounds; round++) {
    if (round == forbid_at && world_rank == 1) ForbidReadingProcesses();
    const int count = kWords[round % 10], kind = round / 10 % 4;
    const int send_gap = kind == 2 && world_rank % 2 == 0 ? 2 : 1, receive_gap = kind == 3 && world_rank == 0 ? 2 : 1;
    int* given = malloc(sizeof(int) * (size_t)count * (size_t)world_size * 2);
    int* got = malloc(sizeof(int) * (size_t)count * (size_t)world_size * 2);
    Fill(given, count, send_gap, round, 0);
    Fill(got, count, receive_gap, round, kind != 1);
    MPI_Alltoall(kind == 1 ? MPI_IN_PLACE : given, count, send_gap == 2 ? spread : MPI_INT, got, count, receive_gap == 2 ? spread : MPI_INT, MPI_COMM_WORLD);
    int wrong = 0;
    for (int rank = 0; rank < world_size; rank++) {
      for (int i = 0; i < count; i++) {
        wrong += got[((size_t)rank * (size_t)count + (size_t)i) * (size_t)receive_gap] != Word(rank, world_rank, round, i);
      }
    }
    CHECK_EQ(wrong, 0);
    memset(given, 0, sizeof(int) * (size_t)count * (size_t)world_size * 2); /* who still reads it is too late */
    free(given);
    free(got);
  }
  PrintWays(&ways);
  MPI_Type_free(&one);
  MPI_Type_free(&spread);
  const int status = End();
  MPI_T_finalize();
  return status;
}
