/* MPIX_COMM_TYPE_NEIGHBORHOOD: processes that see the same directory. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/mpi/check.h"

static char directory[MPI_MAX_INFO_VAL]; /* which rank 0 made */

static int FilesThere(void) {
  DIR* dir = opendir(directory);
  int files = -2; /* . and .. */
  while (dir != NULL && readdir(dir) != NULL) files++;
  if (dir != NULL) closedir(dir);
  return files;
}

static MPI_Comm Neighbours(MPI_Comm comm, const char* key, const char* value, int order) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Comm made = MPI_COMM_SELF;
  if (key != NULL) {
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
  }
  CHECK_OK(MPI_Comm_split_type(comm, MPIX_COMM_TYPE_NEIGHBORHOOD, order, info, &made));
  if (key != NULL) MPI_Info_free(&info);
  return made;
}

/* All are on one host here. */
static void AllSeeIt(const char* path) {
  MPI_Comm made = Neighbours(MPI_COMM_WORLD, "nbhd_common_dirname", path, -world_rank);
  int size, rank, sum = 0;
  CHECK(made != MPI_COMM_NULL);
  if (made == MPI_COMM_NULL) return;
  MPI_Comm_size(made, &size);
  MPI_Comm_rank(made, &rank);
  CHECK_EQ(size, world_size);
  if (!MpichDeviates("the key does not count")) CHECK_EQ(rank, world_size - 1 - world_rank);
  CHECK_OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, made));
  CHECK_EQ(sum, world_size * (world_size - 1) / 2);
  MPI_Comm_free(&made);
}

static void HintsThatSayNothing(void) {
  MPI_Comm made = Neighbours(MPI_COMM_WORLD, NULL, NULL, 0);
  CHECK(made == MPI_COMM_NULL);
  made = Neighbours(MPI_COMM_WORLD, "of_no_meaning", "at all", 0);
  CHECK(made == MPI_COMM_NULL);
}

/* Each rank has another directory, under one name. */
static void ApartAndAbsent(void) {
  char own[600];
  MPI_Comm made;
  int size;
  snprintf(own, sizeof own, "%s/of_%d", directory, world_rank);
  CHECK_EQ(mkdir(own, 0700), 0);
  CHECK_EQ(chdir(own), 0);
  made = Neighbours(MPI_COMM_WORLD, "nbhd_common_dirname", ".", 0);
  CHECK(made != MPI_COMM_NULL);
  if (made != MPI_COMM_NULL) {
    MPI_Comm_size(made, &size);
    CHECK_EQ(size, 1);
    MPI_Comm_free(&made);
  }
  /* The last rank has none of that name. */
  if (world_rank != world_size - 1) CHECK_EQ(mkdir("here", 0700), 0);
  made = Neighbours(MPI_COMM_WORLD, "nbhd_common_dirname", "here", 0);
  CHECK_EQ(made == MPI_COMM_NULL, world_rank == world_size - 1);
  if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
  if (world_rank != world_size - 1) CHECK_EQ(rmdir("here"), 0);
  CHECK_EQ(chdir(directory), 0);
  CHECK_EQ(rmdir(own), 0);
  /* A hint is the same everywhere, or it is none. */
  made = Neighbours(MPI_COMM_WORLD, "nbhd_common_dirname", world_rank == 0 ? "." : directory, 0);
  CHECK_EQ(made == MPI_COMM_NULL, world_size > 1);
  if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
}

static void OfTwoGroups(void) {
  MPI_Comm half, inter, made;
  int size, remote;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 0, &inter);
  made = Neighbours(inter, "nbhd_common_dirname", directory, 0);
  CHECK(made != MPI_COMM_NULL);
  MPI_Comm_size(made, &size);
  MPI_Comm_remote_size(made, &remote);
  CHECK_EQ(size + remote, world_size);
  MPI_Comm_free(&made);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (world_rank == 0) {
    const char* temporary = getenv("TEST_TMPDIR");
    snprintf(directory, sizeof directory, "%s/neighborhood_XXXXXX", temporary != NULL ? temporary : "/tmp");
    if (mkdtemp(directory) == NULL) REPORT("no directory %s", directory);
  }
  MPI_Bcast(directory, sizeof directory, MPI_CHAR, 0, MPI_COMM_WORLD);
  AllSeeIt(directory);
  AllSeeIt("/"); /* perhaps nobody may write there */
  HintsThatSayNothing();
  if (!MpichDeviates("it dies of directories that are not there")) {
    ApartAndAbsent();
    if (world_size > 1) OfTwoGroups();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_EQ(FilesThere(), 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) CHECK_EQ(rmdir(directory), 0);
  return End();
}
