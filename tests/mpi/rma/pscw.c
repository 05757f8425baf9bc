/* Post, start, complete, wait and test (MPI 4.0 section 12.5.2): neighbours in a ring, then one target and all others. */
#include "tests/mpi/check.h"

static MPI_Group GroupOf(int n, const int ranks[]) {
  MPI_Group world, group;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, n, ranks, &group);
  MPI_Group_free(&world);
  return group;
}

static void Ring(int rounds) {
  enum { kCount = 5000 };
  int *memory, out[kCount];
  MPI_Win win;
  MPI_Win_allocate(sizeof(int) * kCount, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  const int left = Left(), right = Right();
  MPI_Group origins = GroupOf(1, &left), targets = GroupOf(1, &right);
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < kCount; i++) out[i] = world_rank * 100000 + round * 7 + i;
    MPI_Win_post(origins, 0, win);
    MPI_Win_start(targets, 0, win);
    MPI_Put(out, kCount, MPI_INT, right, 0, kCount, MPI_INT, win);
    MPI_Win_complete(win);
    if (round % 2 == 0) {
      MPI_Win_wait(win);
    } else {
      for (int done = 0; !done;) MPI_Win_test(win, &done);
    }
    for (int i = 0; i < kCount; i++) CHECK_EQ(memory[i], left * 100000 + round * 7 + i);
  }
  MPI_Group_free(&origins);
  MPI_Group_free(&targets);
  MPI_Win_free(&win);
}

/* Rank 0 exposes, all others put and get; then rank 0 accesses all others. */
static void Star(void) {
  int *memory, others[64], got = -1;
  MPI_Win win;
  MPI_Win_allocate(sizeof(int) * 64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  for (int r = 0; r < world_size; r++) memory[r] = 500 + world_rank;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int r = 1; r < world_size; r++) others[r - 1] = r;
  const int zero = 0;
  MPI_Group all = GroupOf(world_size - 1, others), center = GroupOf(1, &zero);
  if (world_rank == 0) {
    MPI_Win_post(all, 0, win);
    MPI_Win_wait(win);
    for (int r = 1; r < world_size; r++) CHECK_EQ(memory[r], r * r);
    MPI_Win_start(all, 0, win);
    for (int r = 1; r < world_size; r++) {
      others[r - 1] = 900 + r;
      MPI_Put(&others[r - 1], 1, MPI_INT, r, 0, 1, MPI_INT, win);
    }
    MPI_Win_complete(win);
  } else {
    int value = world_rank * world_rank;
    MPI_Win_start(center, 0, win);
    MPI_Put(&value, 1, MPI_INT, 0, world_rank, 1, MPI_INT, win);
    MPI_Get(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_complete(win);
    CHECK_EQ(got, 500);
    MPI_Win_post(center, 0, win);
    MPI_Win_wait(win);
    CHECK_EQ(memory[0], 900 + world_rank);
  }
  MPI_Group_free(&all);
  MPI_Group_free(&center);
  MPI_Win_free(&win);
}

/* Test says no until the origin has completed, and the group of the window is all ranks in their order. */
static void TestIsNotEarly(void) {
  int *memory, done = 1, value = 5;
  MPI_Win win;
  MPI_Win_allocate(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Group group, world;
  int result;
  MPI_Win_get_group(win, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_compare(group, world, &result);
  CHECK_EQ(result, MPI_IDENT);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  if (world_size > 1 && world_rank < 2) {
    const int other = 1 - world_rank;
    MPI_Group partner = GroupOf(1, &other);
    if (world_rank == 0) {
      MPI_Win_post(partner, 0, win);
      for (int i = 0; i < 50; i++) {
        MPI_Win_test(win, &done);
        CHECK_EQ(done, 0);
      }
      MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
      MPI_Win_wait(win);
      CHECK_EQ(*memory, 5);
    } else {
      MPI_Win_start(partner, 0, win);
      MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
      MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Win_complete(win);
    }
    MPI_Group_free(&partner);
  }
  MPI_Win_free(&win);
}

/* A second MPI_Win_start is an error and changes nothing: the epoch that is open goes on, and its end does not wait for another post. */
static void NestedStart(void) {
  int *memory, value = 7;
  MPI_Win win;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  if (world_size > 1 && world_rank < 2) {
    const int other = 1 - world_rank;
    MPI_Group partner = GroupOf(1, &other);
    if (world_rank == 0) {
      MPI_Win_post(partner, 0, win);
      MPI_Win_wait(win);
      CHECK_EQ(*memory, 7);
    } else {
      MPI_Win_start(partner, 0, win);
      MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
      CHECK_CLASS(MPI_Win_start(partner, 0, win), MPI_ERR_RMA_SYNC);
      CHECK_OK(MPI_Win_complete(win));
    }
    MPI_Group_free(&partner);
  }
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  Ring(20);
  Star();
  TestIsNotEarly();
  NestedStart();
  return End();
}
