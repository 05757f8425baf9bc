/* Each rank gives each a block, of many lengths: by MPI_Alltoall, MPI_Allgather, MPI_Gather, MPI_Scatter and in place, of contiguous data or, at some
 * ranks, of data with gaps. Each prints "rank R: host=B,copies=C" (ways.h). Arguments: rounds (60), the round from which on rank 1 may not read the
 * memory of other processes any more. */
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

enum { kAlltoall, kAllgather, kGather, kScatter, kCollectives };

typedef struct {
  int count, round;
  int root;
  int in_place;              /* at all ranks, or at the root */
  int send_gap, receive_gap; /* 1: none */
  MPI_Datatype spread;       /* each second word */
} Case;

/* The first word, in its block `to`, of what `from` gives this rank. */
static int Given(int collective, int from) { return collective == kAlltoall || collective == kScatter ? Word(from, world_rank, 0, 0) : Word(from, 0, 0, 0); }

static void Exchange(int collective, const Case* c) {
  const size_t words = (size_t)c->count * (size_t)world_size * 2;
  int* given = malloc(sizeof(int) * words);
  int* got = malloc(sizeof(int) * words);
  const MPI_Datatype from = c->send_gap == 2 ? c->spread : MPI_INT, to = c->receive_gap == 2 ? c->spread : MPI_INT;
  const int is_root = world_rank == c->root, in_place = c->in_place && (is_root || collective == kAlltoall || collective == kAllgather);
  Fill(given, c->count, c->send_gap, c->round, 0);
  Fill(got, c->count, c->receive_gap, c->round, !(in_place && collective == kAlltoall));
  int* const mine = got + (size_t)(collective == kScatter ? 0 : world_rank) * (size_t)c->count * (size_t)c->receive_gap;
  if (in_place && collective != kAlltoall) {
    for (int i = 0; i < c->count; i++) mine[i * c->receive_gap] = Word(world_rank, 0, c->round, i);
  }
  const void* const send = in_place ? MPI_IN_PLACE : given;
  if (collective == kAlltoall) MPI_Alltoall(send, c->count, from, got, c->count, to, MPI_COMM_WORLD);
  if (collective == kAllgather) MPI_Allgather(send, c->count, from, got, c->count, to, MPI_COMM_WORLD);
  if (collective == kGather) MPI_Gather(send, c->count, from, got, c->count, to, c->root, MPI_COMM_WORLD);
  if (collective == kScatter) MPI_Scatter(given, c->count, from, in_place ? MPI_IN_PLACE : got, c->count, to, c->root, MPI_COMM_WORLD);
  int wrong = 0;
  const int blocks = collective == kScatter ? !in_place : collective == kGather && !is_root ? 0 : world_size;
  for (int block = 0; block < blocks; block++) {
    const int first = Given(collective, collective == kScatter ? c->root : block) + Word(0, 0, c->round, 0);
    for (int i = 0; i < c->count; i++) wrong += got[((size_t)block * (size_t)c->count + (size_t)i) * (size_t)c->receive_gap] != first + i * 7;
  }
  CHECK_EQ(wrong, 0);
  memset(given, 0, sizeof(int) * words); /* who still reads it is too late */
  memset(got, 0, sizeof(int) * words);
  free(given);
  free(got);
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
    const Case c = {count, round, round % world_size, kind == 1, send_gap, receive_gap, spread};
    for (int collective = 0; collective < kCollectives; collective++) Exchange(collective, &c);
  }
  PrintWays(&ways);
  MPI_Type_free(&one);
  MPI_Type_free(&spread);
  const int status = End();
  MPI_T_finalize();
  return status;
}
