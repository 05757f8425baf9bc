/* Communicators from every constructor work, side by side, freed early, in chains (MPI 4.0 section 7.4). */
#include "tests/mpi/check.h"

/* A message and a reduction inside; nothing of other communicators gets in. */
static void Works(MPI_Comm comm) {
  int rank, size, sum, in = -1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK_EQ(sum, size * (size - 1) / 2);
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &in, 1, MPI_INT, (rank + size - 1) % size, 0, comm, MPI_STATUS_IGNORE);
  CHECK_EQ(in, (rank + size - 1) % size);
}

static int Compare(MPI_Comm a, MPI_Comm b) {
  int result;
  MPI_Comm_compare(a, b, &result);
  return result;
}

static void Duplicates(void) {
  MPI_Comm dup, idup, with_info;
  MPI_Request request;
  MPI_Info info;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  CHECK_EQ(Compare(dup, MPI_COMM_WORLD), MPI_CONGRUENT);
  CHECK_EQ(Compare(dup, dup), MPI_IDENT);
  CHECK_EQ(Compare(MPI_COMM_SELF, MPI_COMM_WORLD), world_size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL);
  MPI_Comm_idup(dup, &idup, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
  MPI_Comm_dup_with_info(idup, info, &with_info);
  MPI_Info_free(&info);
  MPI_Comm_free(&dup);
  CHECK_EQ(dup, MPI_COMM_NULL);
  Works(idup);
  Works(with_info);
  MPI_Comm_free(&idup);
  MPI_Comm_free(&with_info);
}

static void Split(void) {
  MPI_Comm part;
  int rank, size;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 3, -world_rank, &part);
  MPI_Comm_rank(part, &rank);
  MPI_Comm_size(part, &size);
  CHECK_EQ(size, (world_size - world_rank % 3 + 2) / 3);
  CHECK_EQ(rank, size - 1 - world_rank / 3);
  Works(part);
  MPI_Comm again;
  MPI_Comm_split(part, rank == 0 ? MPI_UNDEFINED : 5, 0, &again);
  CHECK_EQ(again == MPI_COMM_NULL, rank == 0);
  if (again != MPI_COMM_NULL) {
    Works(again);
    MPI_Comm_free(&again);
  }
  MPI_Comm_free(&part);
  /* Equal keys keep the old order. */
  MPI_Comm_split(MPI_COMM_WORLD, 1, 7, &part);
  CHECK_EQ(Compare(part, MPI_COMM_WORLD), MPI_CONGRUENT);
  MPI_Comm_free(&part);
  MPI_Comm_split(MPI_COMM_WORLD, 1, world_size - world_rank, &part);
  CHECK_EQ(Compare(part, MPI_COMM_WORLD), world_size == 1 ? MPI_CONGRUENT : MPI_SIMILAR);
  MPI_Comm_free(&part);
}

static void CreateFromGroups(void) {
  MPI_Group world, evens;
  MPI_Comm comm;
  int ranks[64], n = 0;
  for (int r = 0; r < world_size; r += 2) ranks[n++] = r;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, n, ranks, &evens);
  MPI_Comm_create(MPI_COMM_WORLD, evens, &comm);
  CHECK_EQ(comm == MPI_COMM_NULL, world_rank % 2 == 1);
  if (comm != MPI_COMM_NULL) {
    Works(comm);
    MPI_Comm_free(&comm);
  }
  /* Only the group's members call. */
  if (world_rank % 2 == 0) {
    MPI_Comm_create_group(MPI_COMM_WORLD, evens, 17, &comm);
    Works(comm);
    MPI_Comm_free(&comm);
  }
  /* Disjoint groups at once. */
  MPI_Group odds, mine;
  MPI_Group_difference(world, evens, &odds);
  mine = world_rank % 2 ? odds : evens;
  MPI_Comm_create(MPI_COMM_WORLD, mine, &comm);
  CHECK(comm != MPI_COMM_NULL);
  Works(comm);
  MPI_Comm_free(&comm);
  MPI_Group_free(&odds);
  MPI_Group_free(&evens);
  MPI_Group_free(&world);
}

static void SplitType(void) {
  MPI_Comm comm;
  int size;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  MPI_Comm_size(comm, &size);
  CHECK_EQ(size, world_size);
  Works(comm);
  MPI_Comm_free(&comm);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &comm);
  CHECK_EQ(comm, MPI_COMM_NULL);
}

/* Chains of duplicates, freed in another order than made. */
static void Many(void) {
  MPI_Comm comms[20];
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < 20; i++) MPI_Comm_dup(i == 0 ? MPI_COMM_WORLD : comms[i - 1], &comms[i]);
    Works(comms[19]);
    for (int i = 0; i < 20; i++) MPI_Comm_free(&comms[(i + round) % 20]);
  }
}

/* A communicator that was freed lives until its messages are through. */
static void FreedWithMessages(void) {
  MPI_Comm dup;
  MPI_Request requests[2];
  static int in[100000], out[100000];
  for (int i = 0; i < 100000; i++) out[i] = world_rank + i;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Irecv(in, 100000, MPI_INT, Left(), 0, dup, &requests[0]);
  MPI_Isend(out, 100000, MPI_INT, Right(), 0, dup, &requests[1]);
  MPI_Comm_free(&dup);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 100000; i++) CHECK_EQ(in[i], Left() + i);
}

static void NamesAndHandles(void) {
  char name[MPI_MAX_OBJECT_NAME];
  int length, inter = 1;
  MPI_Comm dup;
  MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
  CHECK_STR(name, "MPI_COMM_WORLD");
  MPI_Comm_get_name(MPI_COMM_SELF, name, &length);
  CHECK_STR(name, "MPI_COMM_SELF");
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_get_name(dup, name, &length);
  CHECK_STR(name, "");
  MPI_Comm_set_name(dup, "twin");
  MPI_Comm_get_name(dup, name, &length);
  CHECK_STR(name, "twin");
  CHECK_EQ(length, 4);
  MPI_Comm_test_inter(dup, &inter);
  CHECK(!inter);
  CHECK_EQ(MPI_Comm_f2c(MPI_Comm_c2f(dup)), dup);
  CHECK_EQ(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)), MPI_COMM_WORLD);
  MPI_Comm_free(&dup);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  Duplicates();
  Split();
  CreateFromGroups();
  SplitType();
  Many();
  FreedWithMessages();
  NamesAndHandles();
  return End();
}
