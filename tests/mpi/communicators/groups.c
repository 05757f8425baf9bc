/* Groups (MPI 4.0 section 7.3): set operations, ranges, translation, comparison, and what they refuse. */
#include "tests/mpi/check.h"

static MPI_Group world;

/* The world ranks of a group, in its order, against `count` expected ones. */
static void CheckMembers(MPI_Group group, int count, const int expected[], const char* what) {
  int size, ranks[64], in_world[64];
  MPI_Group_size(group, &size);
  if (size != count) REPORT("%s has %d members, not %d", what, size, count);
  for (int i = 0; i < size; i++) ranks[i] = i;
  MPI_Group_translate_ranks(group, size, ranks, world, in_world);
  for (int i = 0; i < size && i < count; i++) {
    if (in_world[i] != expected[i]) REPORT("member %d of %s is %d, not %d", i, what, in_world[i], expected[i]);
  }
}

static void InclAndExcl(void) {
  MPI_Group reversed, rest, none;
  int ranks[64], expected[64], rank;
  for (int i = 0; i < world_size; i++) ranks[i] = world_size - 1 - i;
  MPI_Group_incl(world, world_size, ranks, &reversed);
  CheckMembers(reversed, world_size, ranks, "reversed");
  MPI_Group_rank(reversed, &rank);
  CHECK_EQ(rank, world_size - 1 - world_rank);
  /* Without the first of the reversed ones, the last rank of the world. */
  int first[1] = {0};
  MPI_Group_excl(reversed, 1, first, &rest);
  CheckMembers(rest, world_size - 1, ranks + 1, "rest");
  MPI_Group_rank(rest, &rank);
  CHECK_EQ(rank, world_rank == world_size - 1 ? MPI_UNDEFINED : world_size - 2 - world_rank);
  MPI_Group_incl(world, 0, NULL, &none);
  CHECK(none == MPI_GROUP_EMPTY);
  MPI_Group_excl(world, world_size, ranks, &none);
  CHECK(none == MPI_GROUP_EMPTY);
  for (int i = 0; i < world_size; i++) expected[i] = i;
  MPI_Group same;
  MPI_Group_excl(world, 0, NULL, &same);
  CheckMembers(same, world_size, expected, "same");
  MPI_Group_free(&same);
  if (rest != MPI_GROUP_EMPTY) MPI_Group_free(&rest);
  MPI_Group_free(&reversed);
  CHECK(reversed == MPI_GROUP_NULL);
}

static void Ranges(void) {
  MPI_Group group;
  int even[64], rest[64], evens = 0, rests = 0;
  for (int i = 0; i < world_size; i++) {
    if (i % 2 == 0) even[evens++] = i;
    if (i % 2 != 0) rest[rests++] = i;
  }
  int up[1][3] = {{0, world_size - 1, 2}};
  MPI_Group_range_incl(world, 1, up, &group);
  CheckMembers(group, evens, even, "the even ones");
  MPI_Group_free(&group);
  MPI_Group_range_excl(world, 1, up, &group);
  CheckMembers(group, rests, rest, "the odd ones");
  if (group != MPI_GROUP_EMPTY) MPI_Group_free(&group);
  int down[1][3] = {{world_size - 1, 0, -1}}, reversed[64];
  for (int i = 0; i < world_size; i++) reversed[i] = world_size - 1 - i;
  MPI_Group_range_incl(world, 1, down, &group);
  CheckMembers(group, world_size, reversed, "all, downwards");
  MPI_Group_free(&group);
  if (world_size >= 4) {
    int two[2][3] = {{3, 2, -1}, {0, 1, 1}}, expected[4] = {3, 2, 0, 1};
    MPI_Group_range_incl(world, 2, two, &group);
    CheckMembers(group, 4, expected, "two ranges");
    MPI_Group_free(&group);
  }
}

static void SetOperations(void) {
  if (world_size < 4) return;
  MPI_Group a, b, result;
  int in_a[3] = {3, 0, 1}, in_b[3] = {2, 1, 3}, relation;
  MPI_Group_incl(world, 3, in_a, &a);
  MPI_Group_incl(world, 3, in_b, &b);
  MPI_Group_union(a, b, &result);
  CheckMembers(result, 4, (int[]){3, 0, 1, 2}, "the union");
  MPI_Group_free(&result);
  MPI_Group_intersection(a, b, &result);
  CheckMembers(result, 2, (int[]){3, 1}, "the intersection");
  MPI_Group_free(&result);
  MPI_Group_difference(a, b, &result);
  CheckMembers(result, 1, (int[]){0}, "the difference");
  MPI_Group_free(&result);
  MPI_Group_difference(a, a, &result);
  CHECK(result == MPI_GROUP_EMPTY);
  MPI_Group_union(MPI_GROUP_EMPTY, a, &result);
  CheckMembers(result, 3, in_a, "the union with nobody");
  MPI_Group_compare(a, result, &relation);
  CHECK_EQ(relation, MPI_IDENT);
  MPI_Group_free(&result);
  MPI_Group_incl(world, 3, (int[]){0, 1, 3}, &result);
  MPI_Group_compare(a, result, &relation);
  CHECK_EQ(relation, MPI_SIMILAR);
  MPI_Group_compare(b, result, &relation);
  CHECK_EQ(relation, MPI_UNEQUAL);
  int out[4];
  MPI_Group_translate_ranks(a, 4, (int[]){0, 1, 2, MPI_PROC_NULL}, b, out);
  CHECK_EQ(out[0], 2);
  CHECK_EQ(out[1], MPI_UNDEFINED);
  CHECK_EQ(out[2], 1);
  CHECK_EQ(out[3], MPI_PROC_NULL);
  MPI_Group_free(&result);
  MPI_Group_free(&a);
  MPI_Group_free(&b);
}

static void Refuses(void) {
  MPI_Group group;
  int size, over[1] = {world_size}, far_below[1] = {-2};
  int no_stride[1][3] = {{0, 0, 0}}, beyond[1][3] = {{0, world_size, 1}}, twice[2][3] = {{0, 0, 1}, {0, 0, 1}};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Group_size(MPI_GROUP_NULL, &size), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Group_size(world, NULL), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_incl(world, 1, over, &group), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_incl(world, 1, far_below, &group), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_incl(world, -1, over, &group), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_excl(world, 1, over, &group), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_translate_ranks(world, 1, over, world, &size), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_range_incl(world, 1, no_stride, &group), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_range_incl(world, 1, beyond, &group), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_range_excl(world, 2, twice, &group), MPI_ERR_ARG);
  int duplicate[2] = {0, 0};
  if (!MpichDeviates("takes duplicates")) CHECK_CLASS(MPI_Group_incl(world, 2, duplicate, &group), MPI_ERR_RANK);
  MPI_Group freed = MPI_GROUP_NULL;
  CHECK_CLASS(MPI_Group_free(&freed), MPI_ERR_GROUP);
  MPI_Comm null = MPI_COMM_NULL, predefined = MPI_COMM_WORLD;
  CHECK_CLASS(MPI_Comm_size(null, &size), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_free(&null), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_free(&predefined), MPI_ERR_COMM);
  MPI_Comm made;
  CHECK_CLASS(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &made), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Comm_create_group(MPI_COMM_WORLD, world, -1, &made), MPI_ERR_TAG);
  CHECK_CLASS(MPI_Comm_split_type(MPI_COMM_WORLD, 99, 0, MPI_INFO_NULL, &made), MPI_ERR_ARG);
  if (world_size > 1) CHECK_CLASS(MPI_Comm_create(MPI_COMM_SELF, world, &made), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Intercomm_create(MPI_COMM_SELF, 1, MPI_COMM_WORLD, 0, 1, &made), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, world_size, 1, &made), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, world_rank, 1, &made), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_NULL, 0, 1, &made), MPI_ERR_COMM);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  InclAndExcl();
  Ranges();
  SetOperations();
  Refuses();
  MPI_Group_free(&world);
  return End();
}
