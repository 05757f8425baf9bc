/* Intercommunicators (MPI 4.0 section 7.6): creation over several leaders, messages, dup, split, create, merge. */
#include "tests/mpi/check.h"

static MPI_Comm half;
static int side, half_rank, half_size, remote_size;

static int RemoteWorldRank(int rank) { return 2 * rank + 1 - side; }

static MPI_Comm Make(int tag) {
  MPI_Comm inter;
  /* Leaders are the last of the low side, the first of the high one. */
  const int low_last = (world_size - 1) / 2 * 2;
  MPI_Intercomm_create(half, side == 0 ? half_size - 1 : 0, MPI_COMM_WORLD, side == 0 ? 1 : low_last, tag, &inter);
  return inter;
}

/* Everyone to everyone of the other side, and a collective. */
static void Works(MPI_Comm inter) {
  int rank, size, remote, flag;
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_size(inter, &size);
  MPI_Comm_remote_size(inter, &remote);
  MPI_Comm_test_inter(inter, &flag);
  CHECK(flag);
  for (int i = 0; i < (size > remote ? size : remote); i++) {
    MPI_Request request = MPI_REQUEST_NULL;
    int in = -1, out = 100 * rank + i;
    if (i < remote) MPI_Irecv(&in, 1, MPI_INT, i, 3, inter, &request);
    if (i < remote) MPI_Send(&out, 1, MPI_INT, i, 3, inter);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (i < remote) CHECK_EQ(in, 100 * i + rank);
  }
  int out[2] = {1, rank}, in[2] = {-1, -1};
  MPI_Allreduce(out, in, 2, MPI_INT, MPI_SUM, inter);
  CHECK_EQ(in[0], remote);
  CHECK_EQ(in[1], remote * (remote - 1) / 2);
}

static void Groups(MPI_Comm inter) {
  MPI_Group local, remote, world;
  int rank, size, result, all[64], in_world[64];
  MPI_Comm_group(inter, &local);
  MPI_Comm_remote_group(inter, &remote);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_size(remote, &size);
  CHECK_EQ(size, remote_size);
  MPI_Group_rank(local, &rank);
  CHECK_EQ(rank, half_rank);
  MPI_Group_rank(remote, &rank);
  CHECK_EQ(rank, MPI_UNDEFINED);
  for (int i = 0; i < remote_size; i++) all[i] = i;
  MPI_Group_translate_ranks(remote, remote_size, all, world, in_world);
  for (int i = 0; i < remote_size; i++) CHECK_EQ(in_world[i], RemoteWorldRank(i));
  MPI_Comm_compare(inter, half, &result);
  CHECK_EQ(result, MPI_UNEQUAL);
  MPI_Group_free(&local);
  MPI_Group_free(&remote);
  MPI_Group_free(&world);
}

static void Dup(MPI_Comm inter) {
  MPI_Comm dup;
  int result;
  MPI_Comm_dup(inter, &dup);
  MPI_Comm_compare(inter, dup, &result);
  CHECK_EQ(result, MPI_CONGRUENT);
  Works(dup);
  Works(inter);
  MPI_Comm_free(&dup);
}

static void Merge(MPI_Comm inter) {
  MPI_Comm merged;
  int rank, size, result;
  for (int low_is_high = 0; low_is_high < 2; low_is_high++) {
    MPI_Intercomm_merge(inter, side == 0 ? low_is_high : !low_is_high, &merged);
    MPI_Comm_rank(merged, &rank);
    MPI_Comm_size(merged, &size);
    CHECK_EQ(size, world_size);
    const int first = side == low_is_high;
    CHECK_EQ(rank, first ? half_rank : remote_size + half_rank);
    MPI_Comm_compare(merged, MPI_COMM_WORLD, &result);
    CHECK_EQ(result, world_size == 2 && !low_is_high ? MPI_CONGRUENT : MPI_SIMILAR);
    int sum;
    MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, merged);
    CHECK_EQ(sum, world_size * (world_size - 1) / 2);
    MPI_Comm_free(&merged);
    /* Both say the same: any order of the sides, but each in its own. */
    MPI_Intercomm_merge(inter, low_is_high, &merged);
    MPI_Comm_rank(merged, &rank);
    CHECK(rank == half_rank || rank == remote_size + half_rank);
    MPI_Bcast(&rank, 1, MPI_INT, 0, merged);
    CHECK_EQ(rank, 0);
    MPI_Comm_free(&merged);
  }
}

/* Colors that both sides have, and one that only one side has. */
static void Split(MPI_Comm inter) {
  MPI_Comm part;
  int rank, size;
  const int color = half_rank % 2, on_both = color == 0 || remote_size > 1;
  MPI_Comm_split(inter, color, -half_rank, &part);
  CHECK_EQ(part != MPI_COMM_NULL, on_both);
  if (part != MPI_COMM_NULL) {
    MPI_Comm_rank(part, &rank);
    MPI_Comm_size(part, &size);
    CHECK_EQ(size, (half_size + 1 - color) / 2);
    CHECK_EQ(rank, size - 1 - half_rank / 2);
    Works(part);
    MPI_Comm_free(&part);
  }
  MPI_Comm_split(inter, half_rank == 0 ? 0 : MPI_UNDEFINED, 0, &part);
  CHECK_EQ(part != MPI_COMM_NULL, half_rank == 0);
  if (part != MPI_COMM_NULL) {
    Works(part);
    MPI_Comm_free(&part);
  }
}

static void Create(MPI_Comm inter) {
  MPI_Group local, chosen;
  MPI_Comm part;
  int rank, last[2] = {half_size - 1, 0};
  MPI_Comm_group(inter, &local);
  const int count = half_size > 1 ? 2 : 1;
  MPI_Group_incl(local, count, last, &chosen);
  MPI_Comm_create(inter, chosen, &part);
  MPI_Group_rank(chosen, &rank);
  CHECK_EQ(part != MPI_COMM_NULL, rank != MPI_UNDEFINED);
  if (part != MPI_COMM_NULL) {
    int in_part;
    MPI_Comm_rank(part, &in_part);
    CHECK_EQ(in_part, rank);
    Works(part);
    MPI_Comm_free(&part);
  }
  /* One side has nobody. */
  MPI_Comm_create(inter, side == 0 ? chosen : MPI_GROUP_EMPTY, &part);
  CHECK(part == MPI_COMM_NULL);
  MPI_Group_free(&chosen);
  MPI_Group_free(&local);
}

/* Rank 1 is in both groups: an error at all of them, not a hang. */
static void OverlappingGroups(void) {
  if (world_size < 3 || MpichDeviates("hangs")) return;
  /* The remote leader is in the local group. */
  MPI_Comm all, none;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Intercomm_create(all, 0, MPI_COMM_WORLD, 1, 1, &none), MPI_ERR_COMM);
  MPI_Comm_free(&all);
  MPI_Group world;
  MPI_Comm ends[2] = {MPI_COMM_NULL, MPI_COMM_NULL}, inter;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int side = 0; side < 2; side++) {
    MPI_Group two;
    MPI_Group_incl(world, 2, (int[]){side, side + 1}, &two);
    MPI_Comm_create(MPI_COMM_WORLD, two, &ends[side]);
    MPI_Group_free(&two);
  }
  for (int side = 0; side < 2; side++) {
    if (ends[side] == MPI_COMM_NULL) continue;
    MPI_Comm_set_errhandler(ends[side], MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Intercomm_create(ends[side], side, MPI_COMM_WORLD, side == 0 ? 2 : 0, 1, &inter), MPI_ERR_COMM);
    MPI_Comm_free(&ends[side]);
  }
  MPI_Group_free(&world);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  if (world_size < 2) return End();
  side = world_rank % 2;
  MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
  MPI_Comm_rank(half, &half_rank);
  MPI_Comm_size(half, &half_size);
  remote_size = world_size - half_size;
  MPI_Comm inter = Make(1), again = Make(1);
  Works(inter);
  Works(again);
  Groups(inter);
  Dup(inter);
  Merge(inter);
  Split(inter);
  Create(inter);
  OverlappingGroups();
  Works(again);
  MPI_Comm_free(&again);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
  return End();
}
