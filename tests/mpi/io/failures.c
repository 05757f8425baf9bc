/* What must fail, how, and at whom: bad arguments, full disks, a rank that may not. Nothing hangs. */
#define _DEFAULT_SOURCE
#include "io.h"

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>

enum { kInts = 5000 };
static int data[kInts];

static void RefusesWhatTheModeForbids(void) {
  MPI_File file = OpenNew("modes", MPI_MODE_WRONLY | MPI_MODE_CREATE);
  MPI_Status status;
  int value = 1;
  CHECK_CLASS(MPI_File_read_at(file, 0, &value, 1, MPI_INT, &status), MPI_ERR_ACCESS);
  CHECK_CLASS(MPI_File_write_at(file, -4, &value, 1, MPI_INT, &status), MPI_ERR_ARG);
  if (!MpichDeviates("does not look at counts that are negative, nor closes what others have open")) {
    CHECK_CLASS(MPI_File_write_at(file, 0, &value, -1, MPI_INT, &status), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_File_write_at(file, INT64_MAX - 2, &value, 1, MPI_INT, &status), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_write_at(file, 0, NULL, 1, MPI_INT, &status), MPI_ERR_BUFFER);
  }
  CHECK_OK(MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status));
  CHECK_OK(MPI_File_close(&file));
  CHECK_OK(MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  CHECK_CLASS(MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
  if (!MpichDeviates("tells the operating system's word for it")) CHECK_CLASS(MPI_File_set_size(file, 0), MPI_ERR_READ_ONLY);
  CloseAndDelete(&file);
}

static MPI_File OpenStrided(const char* name, int amode, const char* buffering) {
  MPI_File file;
  MPI_Datatype strided;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_cb_write", buffering);
  MPI_Info_set(info, "cb_buffer_size", "16384");
  CHECK_OK(MPI_File_open(MPI_COMM_WORLD, name, amode, info, &file));
  MPI_Type_create_resized(MPI_INT, 0, 4 * world_size, &strided);
  MPI_Type_commit(&strided);
  CHECK_OK(MPI_File_set_view(file, 4 * world_rank, MPI_INT, strided, "native", MPI_INFO_NULL));
  MPI_Type_free(&strided);
  MPI_Info_free(&info);
  return file;
}

/* /dev/full takes nothing. */
static void AllHearOfAFullDisk(void) {
  static const char* const ways[] = {"enable", "disable"};
  MPI_Status status;
  MPI_Request request;
  for (int way = 0; way < 2; way++) {
    MPI_File file = OpenStrided("/dev/full", MPI_MODE_WRONLY, ways[way]);
    CHECK_CLASS(MPI_File_write_at_all(file, 0, data, kInts, MPI_INT, &status), MPI_ERR_NO_SPACE);
    CHECK_OK(MPI_File_iwrite_at_all(file, 0, data, kInts, MPI_INT, &request));
    CHECK_CLASS(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE);
    /* Only one of them has data. */
    CHECK_CLASS(MPI_File_write_at_all(file, 0, data, world_rank == world_size - 1 ? kInts : 0, MPI_INT, &status), MPI_ERR_NO_SPACE);
    CHECK_CLASS(MPI_File_write_at(file, 0, data, 10, MPI_INT, &status), MPI_ERR_NO_SPACE);
    CHECK_OK(MPI_File_iwrite_at(file, 0, data, 10, MPI_INT, &request));
    CHECK_CLASS(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE);
    CHECK_OK(MPI_File_close(&file));
  }
}

/* The last rank may not write beyond 10000 bytes, the others may. */
static void AllHearOfOneRanksLimit(void) {
  struct rlimit before, limit;
  MPI_Status status;
  NameFile("limit");
  MPI_File file = OpenStrided(file_name, MPI_MODE_RDWR | MPI_MODE_CREATE, "disable");
  getrlimit(RLIMIT_FSIZE, &before);
  limit = before;
  signal(SIGXFSZ, SIG_IGN);
  if (world_rank == world_size - 1) limit.rlim_cur = 10000;
  setrlimit(RLIMIT_FSIZE, &limit);
  CHECK_CLASS(MPI_File_write_at_all(file, 0, data, kInts, MPI_INT, &status), MPI_ERR_IO);
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK_OK(MPI_File_write_at_all(file, 0, data, kInts, MPI_INT, &status));
  CloseAndDelete(&file);
}

/* Where the test runs as root: the last rank does not for a while. */
static void AllHearOfOneRankWithoutPermission(void) {
  MPI_File file;
  if (geteuid() != 0 || world_size == 1) return;
  NameFile("permission");
  if (world_rank == 0) close(open(file_name, O_CREAT | O_WRONLY, 0600));
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == world_size - 1) CHECK_EQ(seteuid(65534), 0);
  int code = MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  if (world_rank == world_size - 1) CHECK_EQ(seteuid(0), 0);
  CHECK_CLASS(code, MPI_ERR_ACCESS);
  CHECK(file == MPI_FILE_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) unlink(file_name);
}

static void AllHearOfOneRanksBadArguments(void) {
  MPI_File file, other;
  MPI_Status status;
  NameFile("arguments");
  CHECK_CLASS(MPI_File_open(MPI_COMM_WORLD, file_name, world_rank == 0 ? 0 : MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &other),
              MPI_ERR_AMODE);
  CHECK(access(file_name, F_OK) != 0);
  file = OpenStrided(file_name, MPI_MODE_RDWR | MPI_MODE_CREATE, "enable");
  CHECK_CLASS(MPI_File_write_at_all(file, 0, data, world_rank == 0 ? -1 : kInts, MPI_INT, &status), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_File_write_at_all(file, world_rank == world_size - 1 ? -1 : 0, data, kInts, MPI_INT, &status), MPI_ERR_ARG);
  if (world_size > 1) {
    CHECK_CLASS(MPI_File_set_size(file, world_rank), MPI_ERR_NOT_SAME);
    CHECK_CLASS(MPI_File_set_atomicity(file, world_rank % 2), MPI_ERR_NOT_SAME);
    CHECK_CLASS(MPI_File_set_view(file, 0, world_rank == 0 ? MPI_INT : MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL), MPI_ERR_NOT_SAME);
  }
  CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, world_rank == 0 ? MPI_DATATYPE_NULL : MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
  CHECK_OK(MPI_File_write_at_all(file, 0, data, kInts, MPI_INT, &status));
  CloseAndDelete(&file);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  for (int i = 0; i < kInts; i++) data[i] = i;
  RefusesWhatTheModeForbids();
  if (!MpichDeviates("lets only those know at which it failed, and others wait")) {
    AllHearOfAFullDisk();
    AllHearOfOneRanksLimit();
    AllHearOfOneRankWithoutPermission();
    AllHearOfOneRanksBadArguments();
  }
  return End();
}
