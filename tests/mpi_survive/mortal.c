/* mortal SEED [WINDOW_US]: ranks that work in rounds, of which some kill themselves at times that SEED picks; the others find each other again. What each learns of
 * what is to be the same at all is said, a line for each, so that who reads can compare.
 *
 * A round: a collective, which may fail; who sees that revokes the communicator, or not; then all agree on whether it went well, and where it did not, or
 * somebody is dead, those that live shrink the communicator and go on with that. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "tests/mpi/check.h"

enum { kRounds = 6, kMostRanks = 64 };

static uint64_t state;
static unsigned Random(unsigned below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % below;
}

static useconds_t dies_after;
static void* Die(void* unused) {
  usleep(dies_after);
  kill(getpid(), SIGKILL);
  return unused;
}

/* "said ROUND WHAT ...": the same at all that say it. */
static void Say(int round, const char* what, long long first, const char* rest) {
  printf("said %d %s %lld %s\n", round, what, first, rest);
  fflush(stdout);
}

static int ClassOf(int code) {
  int class;
  MPI_Error_class(code, &class);
  return class;
}

static void SayMembers(int round, MPI_Comm comm) {
  MPI_Group world, group;
  int size, ranks[kMostRanks], places[kMostRanks];
  char text[8 * kMostRanks] = "";
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_group(comm, &group);
  MPI_Group_size(group, &size);
  for (int i = 0; i < size; ++i) places[i] = i;
  MPI_Group_translate_ranks(group, size, places, world, ranks);
  for (int i = 0; i < size; ++i) snprintf(text + strlen(text), 8, "%d,", ranks[i]);
  MPI_Group_free(&world);
  MPI_Group_free(&group);
  Say(round, "members", size, text);
}

/* Whether it went well here. */
static int Work(MPI_Comm comm, unsigned kind) {
  int rank, size, sum = 0, one = 1, code;
  MPI_Status status;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  switch (kind) {
    case 0:
      code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
      if (code == MPI_SUCCESS) CHECK_EQ(sum, size);
      break;
    case 1:
      code = MPI_Barrier(comm);
      break;
    case 2: /* a ring */
      code = MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 1, &sum, 1, MPI_INT, (rank + size - 1) % size, 1, comm, &status);
      break;
    case 3: /* all to the first, from whoever comes */
      code = MPI_SUCCESS;
      if (rank != 0) code = MPI_Ssend(&rank, 1, MPI_INT, 0, 2, comm);
      for (int i = 1; rank == 0 && i < size && code == MPI_SUCCESS; ++i) code = MPI_Recv(&sum, 1, MPI_INT, MPI_ANY_SOURCE, 2, comm, &status);
      break;
    default: { /* long ones both ways */
      static int out[100000], in[100000];
      MPI_Request requests[2];
      MPI_Irecv(in, 100000, MPI_INT, (rank + 1) % size, 3, comm, &requests[0]);
      MPI_Isend(out, 100000, MPI_INT, (rank + size - 1) % size, 3, comm, &requests[1]);
      code = MPI_SUCCESS;
      for (int i = 0; i < 2; ++i) {
        const int one_code = requests[i] == MPI_REQUEST_NULL ? MPI_ERR_OTHER : MPI_Wait(&requests[i], &status);
        if (one_code != MPI_SUCCESS) {
          code = one_code;
          MPIX_Comm_revoke(comm); /* else the other may wait for what is never sent */
        }
      }
    }
  }
  return code == MPI_SUCCESS;
}

int main(int argc, char** argv) {
  int victims, provided;
  if (argc < 2) return 2;
  const unsigned window = argc > 2 ? (unsigned)atoi(argv[2]) : 3000;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  state = (uint64_t)strtoull(argv[1], NULL, 0) * 2654435761u + 12345;
  for (int i = 0; i < 5; ++i) Random(2);
  victims = 1 + (int)Random((unsigned)world_size - 1);
  char dies[kMostRanks] = "";
  for (int i = 0; i < victims; ++i) {
    const unsigned rank = Random((unsigned)world_size), at = Random(window);
    if (dies[rank]) continue;
    dies[rank] = 1;
    if ((int)rank == world_rank) dies_after = at + 1;
  }
  unsigned kinds[kRounds];
  for (int i = 0; i < kRounds; ++i) kinds[i] = Random(5);
  const unsigned always_revokes = Random(2);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  pthread_t thread;
  if (dies_after != 0 && pthread_create(&thread, NULL, Die, NULL) == 0) pthread_detach(thread);
  for (int round = 0; round < kRounds; ++round) {
    /* Not all of these end with an error at all, so that whoever had one has the others go on. */
    const int good = Work(comm, kinds[round]);
    if (!good && (always_revokes || kinds[round] > 1)) MPIX_Comm_revoke(comm);
    int flag = good ? -1 : ~(1 << (world_rank % 31));
    const int class = ClassOf(MPIX_Comm_agree(comm, &flag));
    Say(round, "agreed", flag, class == MPI_SUCCESS ? "well" : class == MPIX_ERR_PROC_FAILED ? "somebody failed" : "wrongly");
    if (flag == -1 && class == MPI_SUCCESS) continue;
    MPI_Comm living;
    MPIX_Comm_failure_ack(comm);
    CHECK_OK(MPIX_Comm_shrink(comm, &living));
    MPI_Comm_free(&comm);
    comm = living;
    SayMembers(round, comm);
  }
  MPI_Comm_free(&comm);
  printf("lived %d\n", world_rank);
  fflush(stdout);
  return End();
}
