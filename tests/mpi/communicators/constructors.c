/* Constructors of intracommunicators (MPI 4.0 section 7.4.2): who is in them, in which order, and that their messages
 * are apart. */
#include "tests/mpi/check.h"

/* A collective and a ring of messages, with the same tag as those on all other communicators here. */
static void Works(MPI_Comm comm) {
  int rank, size, sum, in = -1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK_EQ(sum, size * (size - 1) / 2);
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 7, &in, 1, MPI_INT, (rank + size - 1) % size, 7, comm,
               MPI_STATUS_IGNORE);
  CHECK_EQ(in, (rank + size - 1) % size);
}

/* What is sent on one is not received on the other. */
static void Apart(MPI_Comm a, MPI_Comm b) {
  int rank, size, in[2] = {-1, -1};
  MPI_Request receives[2];
  MPI_Comm_rank(a, &rank);
  MPI_Comm_size(a, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size, out[2] = {1000 + rank, 2000 + rank};
  MPI_Irecv(&in[1], 1, MPI_INT, left, 7, b, &receives[1]);
  MPI_Irecv(&in[0], 1, MPI_INT, left, 7, a, &receives[0]);
  MPI_Send(&out[0], 1, MPI_INT, right, 7, a);
  MPI_Send(&out[1], 1, MPI_INT, right, 7, b);
  MPI_Waitall(2, receives, MPI_STATUSES_IGNORE);
  CHECK_EQ(in[0], 1000 + left);
  CHECK_EQ(in[1], 2000 + left);
}

static void Dup(void) {
  MPI_Comm a, b, twice;
  int result;
  MPI_Comm_dup(MPI_COMM_WORLD, &a);
  MPI_Comm_dup(MPI_COMM_WORLD, &b);
  MPI_Comm_dup(a, &twice);
  MPI_Comm_compare(a, b, &result);
  CHECK_EQ(result, MPI_CONGRUENT);
  MPI_Comm_compare(a, a, &result);
  CHECK_EQ(result, MPI_IDENT);
  Works(a);
  Works(twice);
  Apart(a, b);
  Apart(a, twice);
  Apart(MPI_COMM_WORLD, b);
  MPI_Comm_free(&a);
  CHECK(a == MPI_COMM_NULL);
  Works(twice);
  Apart(b, twice);
  MPI_Comm_free(&b);
  MPI_Comm_free(&twice);
}

/* Hints go with dup_with_info, not with dup. */
static void Hints(void) {
  MPI_Info info, got;
  MPI_Comm with, plain;
  char value[8] = "";
  int flag = 0;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
  MPI_Info_set(info, "unknown", "true");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &with);
  MPI_Comm_dup(with, &plain);
  MPI_Comm_get_info(with, &got);
  MPI_Info_get(got, "mpi_assert_no_any_tag", 7, value, &flag);
  CHECK(flag);
  CHECK_STR(value, "true");
  MPI_Info_get(got, "unknown", 7, value, &flag);
  CHECK(!flag);
  MPI_Info_free(&got);
  MPI_Comm_get_info(plain, &got);
  MPI_Info_get(got, "mpi_assert_no_any_tag", 7, value, &flag);
  CHECK(!flag || strcmp(value, "false") == 0);
  MPI_Info_free(&got);
  MPI_Info_free(&info);
  MPI_Comm_free(&with);
  MPI_Comm_free(&plain);
}

static void DupOfSelf(void) {
  MPI_Comm self;
  int size;
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  MPI_Comm_size(self, &size);
  CHECK_EQ(size, 1);
  Works(self);
  Apart(self, MPI_COMM_SELF);
  MPI_Comm_free(&self);
}

static void Split(void) {
  MPI_Comm half, reverse, some;
  int rank, size, result;
  /* Keys that say the opposite of the old ranks. */
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half);
  MPI_Comm_size(half, &size);
  MPI_Comm_rank(half, &rank);
  CHECK_EQ(size, (world_size + 1 - world_rank % 2) / 2);
  CHECK_EQ(rank, size - 1 - world_rank / 2);
  Works(half);
  MPI_Comm_split(MPI_COMM_WORLD, 5, -world_rank, &reverse);
  MPI_Comm_rank(reverse, &rank);
  CHECK_EQ(rank, world_size - 1 - world_rank);
  MPI_Comm_compare(MPI_COMM_WORLD, reverse, &result);
  CHECK_EQ(result, world_size == 1 ? MPI_CONGRUENT : MPI_SIMILAR);
  Works(reverse);
  /* Equal keys keep the old order; who has no color gets nothing. */
  MPI_Comm_split(MPI_COMM_WORLD, world_rank == 0 ? MPI_UNDEFINED : 3, 0, &some);
  CHECK_EQ(some == MPI_COMM_NULL, world_rank == 0);
  if (world_rank > 0) {
    MPI_Comm_rank(some, &rank);
    CHECK_EQ(rank, world_rank - 1);
    MPI_Comm_compare(MPI_COMM_WORLD, some, &result);
    CHECK_EQ(result, MPI_UNEQUAL);
    Works(some);
    MPI_Comm_free(&some);
  }
  Works(half);
  MPI_Comm_free(&half);
  MPI_Comm_free(&reverse);
}

static void SplitType(void) {
  MPI_Comm host, none;
  int size, color = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -world_rank, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &size);
  CHECK_EQ(size, world_size); /* the test runs on one host */
  MPI_Comm_rank(host, &color);
  CHECK_EQ(color, world_size - 1 - world_rank);
  Works(host);
  MPI_Comm_free(&host);
  MPI_Comm_split_type(MPI_COMM_WORLD, world_rank == 0 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &none);
  CHECK_EQ(none == MPI_COMM_NULL, world_rank == 0);
  if (none != MPI_COMM_NULL) MPI_Comm_free(&none);
}

static void Create(void) {
  MPI_Group world, odd, reversed;
  MPI_Comm comm;
  int ranks[64], count = 0, rank;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int i = world_size - 1; i >= 0; i--) ranks[count++] = i;
  MPI_Group_incl(world, count, ranks, &reversed);
  MPI_Comm_create(MPI_COMM_WORLD, reversed, &comm);
  MPI_Comm_rank(comm, &rank);
  CHECK_EQ(rank, world_size - 1 - world_rank);
  Works(comm);
  MPI_Comm_free(&comm);
  int range[1][3] = {{world_rank % 2, world_size - 1 - (world_size - 1 - world_rank) % 2, 2}};
  /* Two disjoint groups in one call. */
  MPI_Group_range_incl(world, 1, range, &odd);
  MPI_Comm_create(MPI_COMM_WORLD, odd, &comm);
  CHECK(comm != MPI_COMM_NULL);
  MPI_Comm_rank(comm, &rank);
  CHECK_EQ(rank, world_rank / 2);
  Works(comm);
  MPI_Comm_free(&comm);
  MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm);
  CHECK(comm == MPI_COMM_NULL);
  MPI_Group_free(&odd);
  MPI_Group_free(&reversed);
  MPI_Group_free(&world);
}

/* Only the members call; the others meanwhile do something else. (MPICH 4.0.2 crashes on some duplicates of
 * MPI_COMM_WORLD.) */
static void CreateGroup(void) {
  MPI_Group world, most;
  MPI_Comm comm;
  int rank;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int excluded[1] = {world_size - 1};
  MPI_Group_excl(world, world_size > 1 ? 1 : 0, excluded, &most);
  if (world_size == 1 || world_rank < world_size - 1) {
    for (int round = 0; round < 100; round++) {
      MPI_Comm_create_group(MPI_COMM_WORLD, most, round % 3, &comm);
      MPI_Comm_rank(comm, &rank);
      CHECK_EQ(rank, world_rank);
      if (round % 10 == 0) Works(comm);
      MPI_Comm_free(&comm);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_create_group(MPI_COMM_WORLD, world, 4, &comm);
  Works(comm);
  Apart(comm, MPI_COMM_WORLD);
  MPI_Comm_free(&comm);
  MPI_Group_free(&most);
  MPI_Group_free(&world);
}

/* Handed out again and again, ids do not run out, and long-lived communicators stay apart from new ones. */
static void ManyInTurn(void) {
  enum { kKept = 100 };
  static MPI_Comm kept[kKept];
  const int turns = MpichDeviates("each takes up to 15 ms where ranks outnumber processors") ? 300 : 1500;
  for (int i = 0; i < kKept; i++) MPI_Comm_dup(MPI_COMM_WORLD, &kept[i]);
  for (int i = 0; i < turns; i++) {
    MPI_Comm comm;
    MPI_Comm_dup(i % 2 ? MPI_COMM_WORLD : kept[i % kKept], &comm);
    if (i % 100 == 0) Apart(comm, kept[i % kKept]);
    MPI_Comm_free(&comm);
  }
  for (int i = 0; i < kKept; i += 10) Apart(kept[i], kept[(i * 7 + 1) % kKept]);
  for (int i = 0; i < kKept; i++) MPI_Comm_free(&kept[i]);
}

/* A receive that is under way keeps its communicator alive after MPI_Comm_free. */
static void FreedWhileInUse(void) {
  MPI_Comm comm;
  MPI_Request request;
  int in = -1;
  const int right = Right(), left = Left(), out = world_rank;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Irecv(&in, 1, MPI_INT, left, 3, comm, &request);
  MPI_Send(&out, 1, MPI_INT, right, 3, comm);
  MPI_Comm_free(&comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQ(in, left);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  Works(MPI_COMM_WORLD);
  Dup();
  Hints();
  DupOfSelf();
  Split();
  SplitType();
  Create();
  CreateGroup();
  ManyInTurn();
  FreedWhileInUse();
  return End();
}
