/* recover WHAT: the last rank dies, and the others do what WHAT says. Each that lives says so at the end. */
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/mpi/check.h"
#include "tests/mpi/host_memory.h"

static MPI_Comm comm;
static int last;

/* All but the last go on. */
static void LastDies(void) {
  MPI_Barrier(comm);
  if (world_rank == last) kill(getpid(), SIGKILL);
}

static int SizeOf(MPI_Group group) {
  int size;
  MPI_Group_size(group, &size);
  return size;
}

static void CheckAcknowledged(int count) {
  MPI_Group failed, group;
  CHECK_OK(MPIX_Comm_failure_get_acked(comm, &failed));
  CHECK_EQ(SizeOf(failed), count);
  if (count == 1) {
    int zero = 0, rank;
    MPI_Comm_group(comm, &group);
    MPI_Group_translate_ranks(failed, 1, &zero, group, &rank);
    CHECK_EQ(rank, last);
    MPI_Group_free(&group);
  }
  if (failed != MPI_GROUP_EMPTY) MPI_Group_free(&failed);
}

/* Receives from anyone wait for the living once the death is acknowledged. */
static void Acknowledge(void) {
  static int large[1000000];
  int value = -1, flag;
  MPI_Status status;
  MPI_Request posted, before;
  int ready = 1;
  CHECK_OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &posted));
  LastDies();
  CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, last, 5, comm, &status), MPIX_ERR_PROC_FAILED);
  CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, last, 5, comm), MPIX_ERR_PROC_FAILED);
  /* An exchange that lacks its source does not wait for the other to take what nobody receives. */
  CHECK_CLASS(MPI_Sendrecv(large, 1000000, MPI_INT, (world_rank + 1) % last, 6, &value, 1, MPI_INT, last, 6, comm, &status), MPIX_ERR_PROC_FAILED);
  CheckAcknowledged(0);
  before = posted;
  CHECK_CLASS(MPI_Wait(&posted, &status), MPIX_ERR_PROC_FAILED_PENDING);
  CHECK(posted == before);
  CHECK_CLASS(MPI_Test(&posted, &flag, &status), MPIX_ERR_PROC_FAILED_PENDING);
  CHECK_CLASS(MPI_Waitall(1, &posted, &status), MPI_ERR_IN_STATUS);
  CHECK_CLASS(status.MPI_ERROR, MPIX_ERR_PROC_FAILED_PENDING);
  CHECK(posted == before);
  CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 2, comm, &status), MPIX_ERR_PROC_FAILED);
  CHECK_CLASS(MPI_Probe(MPI_ANY_SOURCE, 2, comm, &status), MPIX_ERR_PROC_FAILED);
  CHECK_OK(MPIX_Comm_failure_ack(comm));
  CheckAcknowledged(1);
  CHECK_OK(MPIX_Comm_agree(comm, &ready)); /* nobody sends before all have looked */
  CHECK_OK(MPI_Iprobe(MPI_ANY_SOURCE, 6, comm, &flag, &status));
  CHECK(!flag);
  /* It is still there, and first. */
  const int left = (world_rank + last - 1) % last, right = (world_rank + 1) % last;
  CHECK_OK(MPI_Send(&world_rank, 1, MPI_INT, right, 1, comm));
  CHECK_OK(MPI_Wait(&posted, &status));
  CHECK_EQ(value, left);
  CHECK(posted == MPI_REQUEST_NULL);
  CHECK_OK(MPI_Sendrecv(&world_rank, 1, MPI_INT, right, 2, &value, 1, MPI_INT, MPI_ANY_SOURCE, 2, comm, &status));
  CHECK_EQ(value, left);
}

static void Agree(void) {
  int flag = ~(1 << world_rank), all = -1;
  for (int rank = 0; rank < world_size; ++rank) all &= ~(1 << rank);
  CHECK_OK(MPIX_Comm_agree(comm, &flag));
  CHECK_EQ(flag, all);
  LastDies();
  all |= 1 << last;
  flag = ~(1 << world_rank);
  CHECK_CLASS(MPIX_Comm_agree(comm, &flag), MPIX_ERR_PROC_FAILED);
  CHECK_EQ(flag, all);
  /* One that has not acknowledged is enough for an error at all; what was agreed on, all can. */
  if (world_rank == 0) CHECK_OK(MPIX_Comm_failure_ack(comm));
  flag = world_rank == 0 ? 5 : 7;
  CHECK_CLASS(MPIX_Comm_agree(comm, &flag), last == 1 ? MPI_SUCCESS : MPIX_ERR_PROC_FAILED);
  CHECK_EQ(flag, 5);
  CHECK_OK(MPIX_Comm_failure_ack(comm));
  CheckAcknowledged(1);
  flag = 1;
  CHECK_OK(MPIX_Comm_agree(comm, &flag));
  CHECK_EQ(flag, 1);
}

static void UseAll(MPI_Comm living) {
  int rank, size, sum = 0, one = 1;
  MPI_Comm again;
  MPI_Comm_rank(living, &rank);
  MPI_Comm_size(living, &size);
  CHECK_EQ(size, last);
  CHECK_EQ(rank, world_rank);
  CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, living));
  CHECK_EQ(sum, size);
  CHECK_OK(MPI_Comm_dup(living, &again));
  CHECK_OK(MPI_Bcast(&sum, 1, MPI_INT, size - 1, again));
  CHECK_OK(MPI_Comm_free(&again));
}

static void Shrink(void) {
  MPI_Comm living;
  LastDies();
  for (int i = 0; i < 3; ++i) {
    CHECK_OK(MPIX_Comm_shrink(comm, &living));
    UseAll(living);
    CHECK_OK(MPI_Comm_free(&living));
  }
}

/* Rank 0 revokes while all others wait in something that never comes. */
static void Revoke(void) {
  static int large[1000000];
  int value = 0, flag;
  MPI_Status status;
  MPI_Comm living, other;
  MPI_Request receive, long_send, synchronous;
  CHECK_OK(MPI_Comm_dup(comm, &other));
  LastDies();
  const int right = (world_rank + 1) % last;
  CHECK_OK(MPI_Irecv(&value, 1, MPI_INT, right, 9, comm, &receive));
  CHECK_OK(MPI_Isend(large, 1000000, MPI_INT, right, 10, comm, &long_send));
  CHECK_OK(MPI_Issend(&value, 1, MPI_INT, right, 11, comm, &synchronous));
  flag = 1;
  CHECK_CLASS(MPIX_Comm_agree(comm, &flag), MPIX_ERR_PROC_FAILED); /* all have begun */
  if (world_rank == 0) CHECK_OK(MPIX_Comm_revoke(comm));
  if (last > 1) CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, right, 12, comm, &status), MPIX_ERR_REVOKED);
  CHECK_CLASS(MPI_Wait(&receive, &status), MPIX_ERR_REVOKED);
  CHECK_CLASS(MPI_Wait(&long_send, &status), MPIX_ERR_REVOKED);
  CHECK_CLASS(MPI_Wait(&synchronous, &status), MPIX_ERR_REVOKED);
  CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, right, 9, comm), MPIX_ERR_REVOKED);
  CHECK_CLASS(MPI_Probe(right, 9, comm, &status), MPIX_ERR_REVOKED);
  CHECK_CLASS(MPI_Iprobe(right, 9, comm, &flag, &status), MPIX_ERR_REVOKED);
  CHECK_CLASS(MPI_Barrier(comm), MPIX_ERR_REVOKED);
  CHECK_CLASS(MPI_Comm_dup(comm, &living), MPIX_ERR_REVOKED);
  CHECK_OK(MPIX_Comm_revoke(comm));
  flag = 3;
  CHECK_CLASS(MPIX_Comm_agree(comm, &flag), MPIX_ERR_PROC_FAILED);
  CHECK_EQ(flag, 3);
  CHECK_OK(MPIX_Comm_shrink(comm, &living));
  UseAll(living);
  CHECK_OK(MPI_Comm_free(&living));
  /* Others are as they were. */
  CHECK_OK(MPI_Sendrecv(&world_rank, 1, MPI_INT, right, 2, &value, 1, MPI_INT, (world_rank + last - 1) % last, 2, other, &status));
  CHECK_OK(MPI_Comm_free(&other));
}

/* A reduction's function gets what ranks gave to it, and nothing that did not come. */
static int given;
static void OfWhatIsGiven(void* in, void* result, int* count, MPI_Datatype* type) {
  (void)count, (void)type;
  CHECK_EQ(*(int*)in, given);
  CHECK_EQ(*(int*)result, given);
}

/* Some are in a collective, which one leaves for the revocation. */
static void RevokeCollective(void) {
  MPI_Op op;
  CHECK_OK(MPI_Op_create(OfWhatIsGiven, 1, &op));
  for (int i = 0; i < 20; ++i) {
    MPI_Comm one;
    int value = given = 1000 + i; /* of no meaning after a failure */
    CHECK_OK(MPI_Comm_dup(comm, &one));
    if (world_rank == i % world_size) {
      if (i % 3 == 0) usleep(20000);
      CHECK_OK(MPIX_Comm_revoke(one));
    } else {
      CHECK_CLASS(i % 2 == 0 ? MPI_Barrier(one) : MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, op, one), MPIX_ERR_REVOKED);
    }
    CHECK_OK(MPI_Comm_free(&one));
  }
  CHECK_OK(MPI_Op_free(&op));
  LastDies();
}

/* None of them can be without the last: all hear of its death, those too that only wait for one that waits for it. */
static void Collectives(void) {
  MPI_Comm again;
  MPI_File file;
  MPI_Request request;
  int sum = 0, one = 1, flag = 1, all[64];
  LastDies();
  CHECK_CLASS(MPI_Barrier(comm), MPIX_ERR_PROC_FAILED);
  CHECK_CLASS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), MPIX_ERR_PROC_FAILED);
  CHECK_CLASS(MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, comm), MPIX_ERR_PROC_FAILED);
  CHECK_CLASS(MPI_Bcast(&one, 1, MPI_INT, last, comm), MPIX_ERR_PROC_FAILED);
  CHECK_OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request));
  CHECK_CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  CHECK_CLASS(MPI_Comm_dup(comm, &again), MPIX_ERR_PROC_FAILED);
  CHECK_CLASS(MPI_File_open(comm, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPIX_ERR_PROC_FAILED);
  /* Nobody leaves, which is another error, while others are at it. */
  CHECK_CLASS(MPIX_Comm_agree(comm, &flag), MPIX_ERR_PROC_FAILED);
}

/* MPI_COMM_WORLD itself. */
static void World(void) {
  MPI_Comm living;
  LastDies();
  if (world_rank == 0) CHECK_OK(MPIX_Comm_revoke(MPI_COMM_WORLD));
  CHECK_OK(MPIX_Comm_shrink(MPI_COMM_WORLD, &living));
  UseAll(living);
  CHECK_OK(MPI_Comm_free(&living));
}

/* Even and odd ranks, which are the two groups of an intercommunicator; that of the last rank has two at least. */
static void Inter(void) {
  MPI_Comm half, inter, living;
  int flag = ~(1 << world_rank), all = -1, size, remote, sum = 0, one = 1, hears;
  CHECK_OK(MPI_Comm_split(comm, world_rank % 2, 0, &half));
  CHECK_OK(MPI_Intercomm_create(half, 0, comm, 1 - world_rank % 2, 3, &inter));
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  LastDies();
  for (int rank = 0; rank < last; ++rank) all &= ~(1 << rank);
  CHECK_CLASS(MPIX_Comm_agree(inter, &flag), MPIX_ERR_PROC_FAILED);
  CHECK_EQ(flag, all);
  if (world_rank == 1) CHECK_OK(MPIX_Comm_revoke(inter));
  CHECK_OK(MPIX_Comm_shrink(inter, &living));
  MPI_Comm_size(living, &size);
  MPI_Comm_remote_size(living, &remote);
  CHECK_EQ(size + remote, last);
  CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, living));
  CHECK_EQ(sum, remote);
  CHECK_CLASS(MPI_Recv(&hears, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
  CHECK_OK(MPI_Comm_free(&living));
  CHECK_OK(MPI_Comm_free(&inter));
  CHECK_OK(MPI_Comm_free(&half));
}

/* No connection ends with the last: a child of it holds them. The launcher tells of the death, those too that wait for nobody. */
static void Held(void) {
  int value = 0, flag = 1, count = 0;
  MPI_Group failed;
  for (int rank = 0; rank < last; ++rank) {
    if (world_rank == last) CHECK_OK(MPI_Send(&value, 1, MPI_INT, rank, 3, comm));
    if (world_rank == rank) CHECK_OK(MPI_Recv(&value, 1, MPI_INT, last, 3, comm, MPI_STATUS_IGNORE));
  }
  MPI_Barrier(comm);
  if (world_rank == last) {
    if (fork() == 0) {
      for (;;) pause();
    }
    kill(getpid(), SIGKILL);
  }
  while (world_rank == 0 && count == 0) {
    CHECK_OK(MPIX_Comm_failure_ack(comm));
    CHECK_OK(MPIX_Comm_failure_get_acked(comm, &failed));
    count = SizeOf(failed);
    if (failed != MPI_GROUP_EMPTY) MPI_Group_free(&failed);
  }
  CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, last, 5, comm, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  CHECK_CLASS(MPIX_Comm_agree(comm, &flag), last == 1 ? MPI_SUCCESS : MPIX_ERR_PROC_FAILED);
}

/* What is needed of the dead one in a window fails as anything else does. Those that live go on with theirs. */
static void Windows(void) {
  enum { kFenced = 16, kLarge = 8, kLargeBytes = 1 << 20 };
  int memory[1 + kFenced] = {0}, value = 1, code = MPI_SUCCESS;
  MPI_Win locked, fenced[kFenced], large[kLarge];
  CHECK_OK(MPI_Win_create(&memory[kFenced], sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &locked));
  MPI_Win_set_errhandler(locked, MPI_ERRORS_RETURN);
  for (int i = 0; i < kFenced; ++i) {
    CHECK_OK(MPI_Win_create(&memory[i], sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &fenced[i]));
    MPI_Win_set_errhandler(fenced[i], MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Win_fence(0, fenced[i]));
  }
  const long before = HostPages();
  for (int i = 0; i < kLarge; ++i) {
    char* own;
    CHECK_OK(MPI_Win_allocate(kLargeBytes, 1, MPI_INFO_NULL, comm, &own, &large[i]));
    MPI_Win_set_errhandler(large[i], MPI_ERRORS_RETURN);
    memset(own, 1, kLargeBytes);
  }
  LastDies();
  while (code == MPI_SUCCESS) { /* it may not be dead yet */
    code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, locked);
    if (code == MPI_SUCCESS) code = MPI_Put(&value, 1, MPI_INT, last, 0, 1, MPI_INT, locked);
    if (code == MPI_SUCCESS) code = MPI_Win_unlock(last, locked);
  }
  CHECK_CLASS(code, MPIX_ERR_PROC_FAILED);
  CHECK_OK(MPIX_Comm_failure_ack(comm));
  CheckAcknowledged(1);
  /* Nobody can free them together any more, so each frees its own, whether it heard of the death in this call or not; what others said of one before
   * may come to a rank that has freed it. */
  for (int i = 0; i < kFenced; ++i) {
    CHECK_CLASS(MPI_Win_fence(0, fenced[i]), MPIX_ERR_PROC_FAILED);
    MPI_Win_free(&fenced[i]);
    CHECK(fenced[i] == MPI_WIN_NULL);
  }
  for (int i = 0; i < kLarge; ++i) MPI_Win_free(&large[i]);
  for (int rank = 0; rank < last; ++rank) {
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, locked));
    CHECK_OK(MPI_Put(&value, 1, MPI_INT, rank, 0, 1, MPI_INT, locked));
    CHECK_OK(MPI_Win_unlock(rank, locked));
  }
  CHECK_OK(MPIX_Comm_agree(comm, &value)); /* nobody leaves before */
  CHECK(HostPages() - before < kLargeBytes / 4096); /* the dead one keeps nothing */
}

/* The connection between the first and the last is cut, and nobody dies: each takes the other for dead. The first and those that reach it go on without
 * the last, which hears that from them. */
static void Cut(void) {
  enum { kMostFiles = 1024 };
  static unsigned short ports[kMostFiles];
  struct sockaddr_in address;
  int value = 0, size;
  MPI_Comm living;
  if (world_rank == 0) CHECK_OK(MPI_Send(&value, 1, MPI_INT, last, 3, comm));
  if (world_rank == last) CHECK_OK(MPI_Recv(&value, 1, MPI_INT, 0, 3, comm, MPI_STATUS_IGNORE));
  for (int fd = 0; world_rank == last && fd < kMostFiles; ++fd) {
    socklen_t length = sizeof address;
    if (getsockname(fd, (struct sockaddr*)&address, &length) == 0 && address.sin_family == AF_INET) ports[fd] = address.sin_port;
  }
  CHECK_OK(MPI_Bcast(ports, kMostFiles, MPI_UNSIGNED_SHORT, last, comm));
  CHECK_OK(MPI_Barrier(comm));
  for (int fd = 0; world_rank == 0 && fd < kMostFiles; ++fd) {
    socklen_t length = sizeof address;
    if (getpeername(fd, (struct sockaddr*)&address, &length) != 0 || address.sin_family != AF_INET || address.sin_port == 0) continue;
    for (int i = 0; i < kMostFiles; ++i) {
      if (ports[i] == address.sin_port) shutdown(fd, SHUT_RDWR);
    }
  }
  if (world_rank == 0) CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, last, 5, comm, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  if (world_rank == last) CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, 0, 5, comm, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  const int code = MPIX_Comm_shrink(comm, &living);
  if (world_rank == last) {
    CHECK_CLASS(code, MPIX_ERR_PROC_FAILED);
    return;
  }
  CHECK_OK(code);
  MPI_Comm_size(living, &size);
  CHECK_EQ(size, last);
  CHECK_OK(MPI_Barrier(living));
  CHECK_OK(MPI_Comm_free(&living));
}

/* The last two have a communicator, and one of them ends it: by itself or by an error. The other waits for a message. */
static void EndPair(int by_error) {
  MPI_Comm pair;
  int value = 0;
  MPI_Comm_split(comm, world_rank >= last - 1, 0, &pair);
  MPI_Comm_set_errhandler(pair, by_error ? MPI_ERRORS_ABORT : MPI_ERRORS_RETURN);
  if (world_rank == last && by_error) MPI_Send(&value, 1, MPI_INT, 99, 0, pair);
  if (world_rank == last) MPI_Abort(pair, 5);
  if (world_rank == last - 1) MPI_Recv(&value, 1, MPI_INT, 0, 7, comm, MPI_STATUS_IGNORE);
  for (int gone = last - 1; gone <= last; ++gone) CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, gone, 7, comm, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  CHECK_OK(MPI_Barrier(pair));
  CHECK_OK(MPI_Comm_free(&pair));
}
static void AbortPair(void) { EndPair(0); }
static void AbortPairByError(void) { EndPair(1); }

/* The last one ends itself alone. */
static void AbortSelf(void) {
  int value = 0;
  if (world_rank == last) MPI_Abort(MPI_COMM_SELF, 5);
  CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, last, 7, comm, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
}

static void AbortWorld(void) {
  int value = 0;
  if (world_rank == last) MPI_Abort(comm, 5);
  MPI_Recv(&value, 1, MPI_INT, last, 7, comm, MPI_STATUS_IGNORE);
  sleep(60); /* the launcher ends it */
}

/* The last rank dies in an epoch, before its fence. `from_it`: the others get its data in each epoch, else it gets theirs. The others come to all fences,
 * although some may fail that others pass: none waits for ever for one that is ahead. */
static void Gets(int from_it) {
  enum { kBytes = 50000, kDeath = 20, kEpochs = 24 };
  static char got[kBytes];
  char* memory;
  MPI_Win win;
  int flag = 1;
  MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, comm, &memory, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  memset(memory, world_rank, kBytes);
  CHECK_OK(MPI_Win_fence(0, win));
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    const int target = from_it ? last : 0, gets = (world_rank == last) != from_it;
    memset(got, -1, kBytes);
    int code = gets ? MPI_Get(got, kBytes, MPI_CHAR, target, 0, kBytes, MPI_CHAR, win) : MPI_SUCCESS;
    if (world_rank == last && epoch == kDeath) kill(getpid(), SIGKILL);
    const int fenced = MPI_Win_fence(0, win);
    if (code == MPI_SUCCESS) code = fenced;
    if (epoch >= kDeath) CHECK_CLASS(fenced, MPIX_ERR_PROC_FAILED);
    if (epoch < kDeath - 1) CHECK_OK(code); /* it may die while others are still in the fence before */
    if (gets && code == MPI_SUCCESS) CHECK_EQ(got[kBytes - 1], target);
  }
  MPI_Win_free(&win);
  CHECK_OK(MPIX_Comm_failure_ack(comm));
  CHECK_OK(MPIX_Comm_agree(comm, &flag));
}

static void GetsFromIt(void) { Gets(1); }
static void ItGets(void) { Gets(0); }

/* Ends with a dead member, and one who never asked for it. */
static void Finalize(void) { LastDies(); }

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kRuns[] = {{"ack", Acknowledge}, {"agree", Agree}, {"shrink", Shrink}, {"revoke", Revoke}, {"collective", RevokeCollective}, {"collectives", Collectives}, {"world", World}, {"inter", Inter}, {"held", Held}, {"windows", Windows}, {"gets_from_it", GetsFromIt}, {"it_gets", ItGets}, {"cut", Cut}, {"abort_pair", AbortPair}, {"abort_pair_by_error", AbortPairByError}, {"abort_self", AbortSelf}, {"abort_world", AbortWorld}, {"finalize", Finalize}};
  Begin(&argc, &argv);
  if (argc < 2) return 2;
  last = world_size - 1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (size_t i = 0; i < sizeof kRuns / sizeof *kRuns; ++i) {
    if (strcmp(argv[1], kRuns[i].name) == 0) kRuns[i].run();
  }
  CHECK_OK(MPI_Comm_free(&comm));
  const int status = End();
  if (status == 0) printf("lived %d\n", world_rank);
  return status;
}
