/* spawn_info DIRECTORY: what the info keys of a spawn do, under an mpiexec whose hosts are made up: on each, descriptor 98 is a file with the host's name, and on
 * one.invalid descriptor 99 is this program, too. Two ranks, a universe of 9. What is spawned has the word "child" and tells its parents where it is. */
#include <unistd.h>

#include "tests/mpi/check.h"

enum { kText = 512 };

struct Place {
  char host[kText], directory[kText];
  int universe, application, size;
};

static const char* program;

static int Attribute(int key) {
  int *value, flag;
  CHECK_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
  return flag ? *value : -1;
}

static int Child(MPI_Comm parent) {
  struct Place place = {.universe = Attribute(MPI_UNIVERSE_SIZE), .application = Attribute(MPI_APPNUM), .size = world_size};
  if (pread(98, place.host, kText - 1, 0) < 0) place.host[0] = 0;
  if (getcwd(place.directory, kText) == NULL) place.directory[0] = 0;
  CHECK_OK(MPI_Send(&place, sizeof place, MPI_BYTE, 0, 1, parent));
  CHECK_OK(MPI_Comm_disconnect(&parent));
  return End();
}

/* Of which `runs` run, with these hosts (of the first and the last; NULL: any) and directory (NULL: any). */
static void ExpectSpawn(const char* command, const char* key, const char* value, int asked, int runs, const char* first, const char* last, const char* directory) {
  MPI_Info info;
  MPI_Comm children;
  int codes[8], remote = 0;
  char* words[] = {"child", NULL};
  CHECK_OK(MPI_Info_create(&info));
  CHECK_OK(MPI_Info_set(info, key, value));
  CHECK_OK(MPI_Comm_spawn(command, words, asked, info, 0, MPI_COMM_WORLD, &children, codes));
  CHECK_OK(MPI_Info_free(&info));
  for (int i = 0; i < asked; ++i) CHECK_EQ(codes[i], i < runs ? MPI_SUCCESS : MPI_ERR_SPAWN);
  CHECK_OK(MPI_Comm_remote_size(children, &remote));
  CHECK_EQ(remote, runs);
  for (int i = 0; world_rank == 0 && i < runs; ++i) {
    struct Place place;
    CHECK_OK(MPI_Recv(&place, sizeof place, MPI_BYTE, i, 1, children, MPI_STATUS_IGNORE));
    CHECK_EQ(place.size, runs);
    CHECK_EQ(place.universe, 9);
    CHECK_EQ(place.application, 0);
    if (i == 0 && first != NULL) CHECK_STR(place.host, first);
    if (i == runs - 1 && last != NULL) CHECK_STR(place.host, last);
    if (directory != NULL) CHECK_STR(place.directory, directory);
  }
  CHECK_OK(MPI_Comm_disconnect(&children));
}

static void ExpectFailure(const char* command, const char* key, const char* value) {
  MPI_Info info;
  MPI_Comm children = MPI_COMM_SELF;
  int codes[2] = {0, 0};
  char* words[] = {"child", NULL};
  CHECK_OK(MPI_Info_create(&info));
  CHECK_OK(MPI_Info_set(info, key, value));
  CHECK_CLASS(MPI_Comm_spawn(command, words, 2, info, 1, MPI_COMM_WORLD, &children, codes), MPI_ERR_SPAWN);
  CHECK_OK(MPI_Info_free(&info));
  CHECK(children == MPI_COMM_NULL);
  for (int i = 0; i < 2; ++i) CHECK_EQ(codes[i], MPI_ERR_SPAWN);
}

int main(int argc, char** argv) {
  MPI_Comm parent;
  Begin(&argc, &argv);
  CHECK_OK(MPI_Comm_get_parent(&parent));
  if (parent != MPI_COMM_NULL) return Child(parent);
  program = argv[0];
  CHECK_EQ(Attribute(MPI_UNIVERSE_SIZE), 9);
  CHECK_EQ(Attribute(MPI_APPNUM), 0);
  char directory[kText], path[2 * kText], hosts[kText];
  snprintf(directory, sizeof directory, "%s", program);
  char* slash = strrchr(directory, '/');
  *slash = 0;
  snprintf(path, sizeof path, "/nowhere:%s", directory);
  snprintf(hosts, sizeof hosts, "%s/hosts", argv[1]);
  ExpectSpawn(program, "host", "one.invalid,two.invalid", 4, 4, "one.invalid", "two.invalid", NULL);
  ExpectSpawn(program, "host", "two.invalid", 1, 1, "two.invalid", "two.invalid", NULL);
  ExpectSpawn(program, "hostfile", hosts, 2, 2, "two.invalid", "one.invalid", NULL);
  ExpectSpawn(program, "wdir", "/usr", 2, 2, NULL, NULL, "/usr");
  ExpectSpawn(slash + 1, "path", path, 1, 1, NULL, NULL, NULL);
  ExpectSpawn(program, "soft", "1:3:2", 4, 3, NULL, NULL, NULL);
  ExpectSpawn(program, "file", "whatever", 1, 1, NULL, NULL, NULL);
  ExpectSpawn(program, "unheard-of", "whatever", 1, 1, NULL, NULL, NULL);

  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  ExpectFailure("/dev/fd/99", "host", "one.invalid,two.invalid"); /* which the second lacks: none runs */
  ExpectFailure(program, "host", "-");
  ExpectFailure(program, "hostfile", "/no/such/file");
  ExpectFailure(program, "wdir", "/no/such/directory");
  ExpectFailure(slash + 1, "path", "/nowhere");
  ExpectFailure(program, "soft", "9");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  ExpectSpawn(program, "host", "one.invalid,two.invalid", 2, 2, "one.invalid", "two.invalid", NULL); /* as before */
  return End();
}
