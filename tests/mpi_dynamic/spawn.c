/* spawn: starts more of itself, in all the ways there are. What is spawned has words: "child", "grow N" (a tree of N levels), "first" and "second"
 * (of one MPI_Comm_spawn_multiple). "hydra": under that launcher, which does not survive a program that it does not find. "silent": what ends without
 * MPI_Init. */
#include <unistd.h>

#include "tests/mpi/check.h"

static char* program;

/* Everyone of one side hears from everyone of the other; then all are one. */
static void Meet(MPI_Comm inter, int expected_remote, int high) {
  int remote, size, sum = 0, one = 1;
  MPI_Comm merged;
  CHECK_OK(MPI_Comm_remote_size(inter, &remote));
  CHECK_EQ(remote, expected_remote);
  CHECK_OK(MPI_Comm_size(inter, &size));
  CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter));
  CHECK_EQ(sum, remote);
  CHECK_OK(MPI_Intercomm_merge(inter, high, &merged));
  CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged));
  CHECK_EQ(sum, remote + size);
  int* memory;
  MPI_Win window;
  CHECK_OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, merged, &memory, &window));
  *memory = 0;
  CHECK_OK(MPI_Win_fence(0, window));
  for (int i = 0; i < remote + size; ++i) CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT, i, 0, 1, MPI_INT, MPI_SUM, window));
  CHECK_OK(MPI_Win_fence(0, window));
  CHECK_EQ(*memory, remote + size);
  CHECK_OK(MPI_Win_free(&window));
  CHECK_OK(MPI_Comm_disconnect(&merged));
}

static void Child(int argc, char** argv) {
  MPI_Comm parent;
  CHECK_OK(MPI_Comm_get_parent(&parent));
  CHECK(parent != MPI_COMM_NULL);
  char name[MPI_MAX_OBJECT_NAME];
  int length, parents, *appnum, flag, level = argc > 2 ? atoi(argv[2]) : 0;
  CHECK_OK(MPI_Comm_get_name(parent, name, &length));
  CHECK_STR(name, "MPI_COMM_PARENT");
  CHECK_OK(MPI_Comm_remote_size(parent, &parents));
  CHECK_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag));
  if (strcmp(argv[1], "first") == 0) CHECK(flag && *appnum == 0);
  if (strcmp(argv[1], "second") == 0) CHECK(flag && *appnum == 1);
  if (level > 1) {
    char text[20];
    snprintf(text, sizeof text, "%d", level - 1);
    char* words[] = {"grow", text, NULL};
    MPI_Comm children;
    CHECK_OK(MPI_Comm_spawn(program, words, 2, MPI_INFO_NULL, world_size - 1, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    Meet(children, 2, 0);
    CHECK_OK(MPI_Comm_disconnect(&children));
  }
  Meet(parent, parents, 1);
  CHECK_OK(MPI_Comm_disconnect(&parent));
  CHECK_OK(MPI_Comm_get_parent(&parent));
  CHECK(parent == MPI_COMM_NULL);
}

static void Spawns(void) {
  MPI_Comm children = MPI_COMM_SELF;
  int codes[4] = {-1, -1, -1, -1};
  char* child[] = {"child", NULL};
  for (int root = 0; root < world_size; ++root) {
    CHECK_OK(MPI_Comm_spawn(program, child, 2, MPI_INFO_NULL, root, MPI_COMM_WORLD, &children, codes));
    CHECK_EQ(codes[0], MPI_SUCCESS);
    CHECK_EQ(codes[1], MPI_SUCCESS);
    Meet(children, 2, 0);
    CHECK_OK(MPI_Comm_disconnect(&children));
  }
  /* Each its own. */
  CHECK_OK(MPI_Comm_spawn(program, child, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, codes));
  Meet(children, 1, 0);
  CHECK_OK(MPI_Comm_disconnect(&children));
  /* A tree. */
  char* grow[] = {"grow", "3", NULL};
  CHECK_OK(MPI_Comm_spawn(program, grow, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
  Meet(children, 1, 0);
  CHECK_OK(MPI_Comm_disconnect(&children));
  /* Two commands. */
  char *commands[] = {program, program}, *first[] = {"first", NULL}, *second[] = {"second", NULL}, **words[] = {first, second};
  int counts[] = {1, 2};
  MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
  CHECK_OK(MPI_Comm_spawn_multiple(2, commands, words, counts, infos, 0, MPI_COMM_WORLD, &children, codes));
  for (int i = 0; i < 3; ++i) CHECK_EQ(codes[i], MPI_SUCCESS);
  Meet(children, 3, 0);
  CHECK_OK(MPI_Comm_disconnect(&children));
}

static void RefusesWhatIsWrong(void) {
  MPI_Comm children = MPI_COMM_SELF;
  int codes[2] = {0, 0};
  char* child[] = {"child", NULL};
  CHECK_CLASS(MPI_Comm_spawn("/no/such/program", child, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes), MPI_ERR_SPAWN);
  CHECK(children == MPI_COMM_NULL);
  for (int i = 0; i < 2; ++i) CHECK_EQ(codes[i], MPI_ERR_SPAWN);
  CHECK_CLASS(MPI_Comm_spawn(program, child, -1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Comm_spawn(program, child, 1, MPI_INFO_NULL, world_size, MPI_COMM_WORLD, &children, codes), MPI_ERR_ROOT);
  CHECK_CLASS(MPI_Comm_spawn(NULL, child, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes), MPI_ERR_ARG);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  program = argv[0];
  const int hydra = argc > 1 && strcmp(argv[1], "hydra") == 0; /* ends with what it cannot spawn */
  const int silent = argc > 1 && strcmp(argv[1], "silent") == 0;
  if (argc > 1 && !hydra && !silent) {
    Child(argc, argv);
    return End();
  }
  MPI_Comm parent = MPI_COMM_SELF;
  CHECK_OK(MPI_Comm_get_parent(&parent));
  CHECK(parent == MPI_COMM_NULL);
  if (silent) { /* what is spawned never comes to MPI_Init */
    MPI_Comm children;
    MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    return 0;
  }
  Spawns();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (!hydra) RefusesWhatIsWrong();
  return End();
}
