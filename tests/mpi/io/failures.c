/* What must fail, how, and at whom: bad arguments, full disks, a rank that may not, files that vanish. Nothing hangs. */
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

/* A file whose name somebody deletes is there until it is closed; what becomes shorter ends earlier. */
static void GoesOnWithAFileThatVanishes(void) {
  MPI_Status status;
  int back[kInts];
  NameFile("vanishing");
  MPI_File file = OpenStrided(file_name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, "enable");
  CHECK_OK(MPI_File_write_at_all(file, 0, data, kInts, MPI_INT, &status));
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) CHECK_EQ(unlink(file_name), 0);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_write_at_all(file, 0, data, kInts, MPI_INT, &status));
  CHECK_OK(MPI_File_read_at_all(file, 0, back, kInts, MPI_INT, &status));
  CHECK_EQ(memcmp(back, data, sizeof data), 0);
  CHECK_OK(MPI_File_set_size(file, 4 * 10 * world_size));
  CHECK_OK(MPI_File_read_at_all(file, 0, back, kInts, MPI_INT, &status));
  CHECK_EQ(BytesOf(&status), 40);
  CHECK_OK(MPI_File_set_size(file, 0));
  CHECK_OK(MPI_File_read_at_all(file, 0, back, kInts, MPI_INT, &status));
  CHECK_EQ(BytesOf(&status), 0);
  /* What was to be deleted is not there: all hear it, and the file is closed all the same. */
  CHECK_CLASS(MPI_File_close(&file), MPI_ERR_NO_SUCH_FILE);
  CHECK(file == MPI_FILE_NULL);
}

/* Handles of files that are no longer open, by each kind of call. */
static void RefusesClosedFiles(void) {
  MPI_File file = OpenNew("closed", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_File handle = file;
  MPI_Offset where;
  MPI_Info info;
  MPI_Group group;
  MPI_Request request;
  MPI_Status status;
  int value = 0;
  CloseAndDelete(&file);
  CHECK_CLASS(MPI_File_write_at(handle, 0, &value, 1, MPI_INT, &status), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_read_all(handle, &value, 1, MPI_INT, &status), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_iwrite(handle, &value, 1, MPI_INT, &request), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_write_all_begin(handle, &value, 1, MPI_INT), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_write_ordered(handle, &value, 1, MPI_INT, &status), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_get_position_shared(handle, &where), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_get_info(handle, &info), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_get_group(handle, &group), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_set_size(handle, 0), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_set_view(handle, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_sync(handle), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_close(&handle), MPI_ERR_FILE);
}

/* Each refused, and the view that was set before still there. */
static void RefusesViewsThatMakeNoSense(void) {
  MPI_File file = OpenNew("views", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Datatype backwards, overlapping, three_bytes, of_ints, uncommitted;
  MPI_Status status;
  int value = 7;
  MPI_Type_vector(2, 1, -3, MPI_INT, &backwards);
  MPI_Type_create_resized(MPI_INT, 0, 2, &three_bytes);
  MPI_Type_contiguous(3, three_bytes, &overlapping);
  MPI_Type_free(&three_bytes);
  MPI_Type_contiguous(3, MPI_BYTE, &three_bytes);
  MPI_Type_contiguous(2, MPI_INT, &of_ints);
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  MPI_Type_commit(&backwards);
  MPI_Type_commit(&overlapping);
  MPI_Type_commit(&three_bytes);
  MPI_Type_commit(&of_ints);
  CHECK_CLASS(MPI_File_set_view(file, -1, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_set_view(file, INT64_MAX, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, backwards, "native", MPI_INFO_NULL), MPI_ERR_IO);
  CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, overlapping, "native", MPI_INFO_NULL), MPI_ERR_IO);
  CHECK_CLASS(MPI_File_set_view(file, 0, three_bytes, of_ints, "native", MPI_INFO_NULL), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, uncommitted, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_File_set_view(file, 0, MPI_DATATYPE_NULL, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "no such", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
  CHECK_CLASS(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
  CHECK_OK(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  CHECK_CLASS(MPI_File_set_view(file, -8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
  /* No part of an etype, and offsets before the beginning. */
  CHECK_CLASS(MPI_File_write_at(file, 0, &value, 3, MPI_BYTE, &status), MPI_ERR_IO);
  CHECK_CLASS(MPI_File_write_at_all(file, -1, &value, 1, MPI_INT, &status), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_seek(file, -1, MPI_SEEK_CUR), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_seek_shared(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  CHECK_OK(MPI_File_write_at_all(file, world_rank, &value, 1, MPI_INT, &status));
  MPI_Offset bytes = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_get_size(file, &bytes));
  CHECK_EQ(bytes, 8 + 4 * world_size);
  MPI_Type_free(&backwards);
  MPI_Type_free(&overlapping);
  MPI_Type_free(&three_bytes);
  MPI_Type_free(&of_ints);
  MPI_Type_free(&uncommitted);
  CloseAndDelete(&file);
}

/* The ranks' pieces alternate 5 TB into the file, and are read from there; before them is a hole. */
static void ReachesFiveTerabytesTogether(void) {
  static const MPI_Offset far = (MPI_Offset)5 << 40;
  MPI_Status status;
  int back[kInts], zeros[10] = {1};
  NameFile("sparse");
  MPI_File file = OpenStrided(file_name, MPI_MODE_RDWR | MPI_MODE_CREATE, "enable");
  const MPI_Offset offset = far / 4 / world_size;
  CHECK_OK(MPI_File_write_at_all(file, offset, data, kInts, MPI_INT, &status));
  CHECK_OK(MPI_File_read_at_all(file, offset, back, kInts, MPI_INT, &status));
  CHECK_EQ(memcmp(back, data, sizeof data), 0);
  CHECK_OK(MPI_File_read_at_all(file, offset / 2, zeros, 10, MPI_INT, &status));
  CHECK_EQ(BytesOf(&status), sizeof zeros);
  for (int i = 0; i < 10; i++) CHECK_EQ(zeros[i], 0);
  /* One at the beginning, the others 5 TB from it: nobody reads or writes what lies between. */
  CHECK_OK(MPI_File_write_at_all(file, world_rank == 0 ? 0 : offset, data, kInts, MPI_INT, &status));
  CHECK_OK(MPI_File_read_at_all(file, world_rank == 0 ? 0 : offset, back, kInts, MPI_INT, &status));
  CHECK_EQ(memcmp(back, data, sizeof data), 0);
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
    GoesOnWithAFileThatVanishes();
    RefusesClosedFiles();
    RefusesViewsThatMakeNoSense();
    ReachesFiveTerabytesTogether();
  }
  return End();
}
