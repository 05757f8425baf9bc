/* Opening, closing and deleting files, access modes, sizes, groups and hints (MPI 4.0 section 14.2). */
#include "io.h"

#define ALL MPI_COMM_WORLD

static void OpensWhatIsThereAndMakesWhatIsNot(void) {
  MPI_File file;
  int amode;
  NameFile("opening");
  CHECK_CLASS(MPI_File_open(ALL, file_name, MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
  CHECK_OK(MPI_File_open(ALL, file_name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &file));
  CHECK_OK(MPI_File_get_amode(file, &amode));
  CHECK_EQ(amode, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL);
  CHECK_OK(MPI_File_close(&file));
  CHECK_CLASS(MPI_File_open(ALL, file_name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &file), MPI_ERR_FILE_EXISTS);
  CHECK_OK(MPI_File_open(ALL, file_name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  CloseAndDelete(&file);
  if (world_rank == 0) CHECK_CLASS(MPI_File_delete(file_name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
}

static void RefusesModesThatMakeNoSense(void) {
  MPI_File file;
  NameFile("modes");
  CHECK_CLASS(MPI_File_open(ALL, file_name, 0, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
  CHECK_CLASS(MPI_File_open(ALL, file_name, MPI_MODE_RDONLY | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
  CHECK_CLASS(MPI_File_open(ALL, file_name, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
  CHECK_CLASS(MPI_File_open(ALL, file_name, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
  CHECK(access(file_name, F_OK) != 0);
  CHECK_CLASS(MPI_File_open(ALL, "/nonexistent/of/a/directory", MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file),
              MPI_ERR_NO_SUCH_FILE);
}

static void DeletesOnClose(void) {
  MPI_File file = OpenNew("deleted", MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
  CHECK(access(file_name, F_OK) == 0);
  MPI_Barrier(ALL);
  CHECK_OK(MPI_File_close(&file));
  MPI_Barrier(ALL);
  CHECK(access(file_name, F_OK) != 0);
}

static void TellsAndSetsSizes(void) {
  MPI_File file = OpenNew("sizes", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Offset size = -1;
  CHECK_OK(MPI_File_get_size(file, &size));
  CHECK_EQ(size, 0);
  CHECK_OK(MPI_File_set_size(file, 12345));
  CHECK_OK(MPI_File_get_size(file, &size));
  CHECK_EQ(size, 12345);
  MPI_Barrier(ALL);
  CHECK_OK(MPI_File_preallocate(file, 20000));
  MPI_Barrier(ALL);
  CHECK_OK(MPI_File_get_size(file, &size));
  CHECK_EQ(size, 20000);
  MPI_Barrier(ALL);
  CHECK_OK(MPI_File_preallocate(file, 10));
  CHECK_OK(MPI_File_get_size(file, &size));
  CHECK_EQ(size, 20000);
  MPI_Barrier(ALL);
  CHECK_OK(MPI_File_set_size(file, 3));
  MPI_Barrier(ALL);
  CHECK_OK(MPI_File_get_size(file, &size));
  CHECK_EQ(size, 3);
  CHECK_CLASS(MPI_File_set_size(file, -1), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_preallocate(file, -1), MPI_ERR_ARG);
  CloseAndDelete(&file);
}

static void MakesASparseFileOfFiveTerabytes(void) {
  MPI_File file = OpenNew("sparse", MPI_MODE_RDWR | MPI_MODE_CREATE);
  const MPI_Offset far = (MPI_Offset)5 << 40;
  MPI_Offset size = 0;
  int value = 100 + world_rank, read = 0;
  MPI_Status status;
  int code = MPI_File_write_at(file, far + 4 * world_rank, &value, 1, MPI_INT, &status);
  int class;
  MPI_Error_class(code, &class);
  if (class == MPI_SUCCESS) {
    CHECK_OK(MPI_File_read_at(file, far + 4 * world_rank, &read, 1, MPI_INT, &status));
    CHECK_EQ(read, value);
    MPI_Barrier(ALL);
    CHECK_OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, far + 4 * world_size);
  }
  CloseAndDelete(&file);
}

static void HasTheGroupOfItsCommunicator(void) {
  MPI_Comm pair;
  MPI_File file;
  MPI_Group of_file, of_comm;
  int how;
  MPI_Comm_split(ALL, world_rank % 2, -world_rank, &pair);
  char mine[600];
  NameFile("group");
  snprintf(mine, sizeof mine, "%s%d", file_name, world_rank % 2);
  CHECK_OK(MPI_File_open(pair, mine, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
  MPI_Comm_group(pair, &of_comm);
  MPI_Comm_free(&pair);
  CHECK_OK(MPI_File_get_group(file, &of_file));
  MPI_Group_compare(of_file, of_comm, &how);
  CHECK_EQ(how, MPI_IDENT);
  MPI_Group_free(&of_file);
  MPI_Group_free(&of_comm);
  CHECK_OK(MPI_File_close(&file));
}

static void CheckHint(MPI_File file, const char* key, const char* expected) {
  MPI_Info info;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int there = 0;
  CHECK_OK(MPI_File_get_info(file, &info));
  MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &there);
  if (!there) REPORT("there is no hint %s", key);
  CHECK_STR(value, expected);
  MPI_Info_free(&info);
}

static void ObeysAndTellsHints(void) {
  MPI_Info info;
  MPI_File file;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_buffer_size", "65536");
  MPI_Info_set(info, "romio_cb_write", "enable");
  MPI_Info_set(info, "romio_ds_read", "disable");
  MPI_Info_set(info, "ind_rd_buffer_size", "131072");
  MPI_Info_set(info, "no_such_hint", "whatever");
  NameFile("hints");
  CHECK_OK(MPI_File_open(ALL, file_name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
  MPI_Info_free(&info);
  CheckHint(file, "cb_buffer_size", "65536");
  CheckHint(file, "romio_cb_write", "enable");
  CheckHint(file, "romio_ds_read", "disable");
  CheckHint(file, "ind_rd_buffer_size", "131072");
  CheckHint(file, "romio_cb_read", "automatic");
  MPI_Info_create(&info);
  MPI_Info_set(info, "ind_wr_buffer_size", "262144");
  CHECK_OK(MPI_File_set_info(file, info));
  MPI_Info_free(&info);
  CheckHint(file, "ind_wr_buffer_size", "262144");
  CheckHint(file, "cb_buffer_size", "65536");
  CloseAndDelete(&file);
}

static void TellsTheAccessStyleAsItWasGiven(void) {
  static const char* const styles[] = {"sequential", "read_once,random", "write_mostly,reverse_sequential", "read_once,write_once,read_mostly,write_mostly,sequential,reverse_sequential,random"};
  MPI_Info info;
  MPI_File file;
  NameFile("style");
  CHECK_OK(MPI_File_open(ALL, file_name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
  for (size_t i = 0; i < sizeof styles / sizeof *styles; ++i) {
    MPI_Info_create(&info);
    MPI_Info_set(info, "access_style", styles[i]);
    CHECK_OK(MPI_File_set_info(file, info));
    if (!MpichDeviates("does not tell it")) CheckHint(file, "access_style", styles[i]);
    MPI_Info_set(info, "access_style", "at_random"); /* no style */
    CHECK_OK(MPI_File_set_info(file, info));
    if (!MpichDeviates("does not tell it")) CheckHint(file, "access_style", styles[i]);
    MPI_Info_free(&info);
  }
  CloseAndDelete(&file);
}

/* Data sieving must read what it rewrites. */
static void TellsThatAFileThatCannotBeReadIsNotSieved(void) {
  MPI_Info info;
  MPI_File file;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_ds_write", "enable");
  NameFile("sieved");
  CHECK_OK(MPI_File_open(ALL, file_name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
  CheckHint(file, "romio_ds_write", "enable");
  CHECK_OK(MPI_File_close(&file));
  MPI_Barrier(ALL);
  CHECK_OK(MPI_File_open(ALL, file_name, MPI_MODE_WRONLY, info, &file));
  CheckHint(file, "romio_ds_write", MpichDeviates("reads files that were opened with MPI_MODE_WRONLY") ? "enable" : "disable");
  MPI_Info_free(&info);
  CloseAndDelete(&file);
}

static int told, told_class;
static void OnError(MPI_File* file, int* code, ...) {
  told++;
  MPI_Error_class(*code, &told_class);
  (void)file;
}

static void ReturnsErrorsAndTellsHandlers(void) {
  MPI_File file = OpenNew("handlers", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Errhandler handler, got;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  CHECK_OK(MPI_File_get_errhandler(file, &got));
  CHECK(got == MPI_ERRORS_RETURN);
  CHECK_OK(MPI_File_create_errhandler(OnError, &handler));
  CHECK_OK(MPI_File_set_errhandler(file, handler));
  CHECK_OK(MPI_File_get_errhandler(file, &got));
  CHECK(got == handler);
  MPI_Errhandler_free(&got);
  MPI_File_seek(file, -1, MPI_SEEK_SET);
  CHECK_EQ(told, 1);
  CHECK_EQ(told_class, MPI_ERR_ARG);
  CHECK_OK(MPI_File_call_errhandler(file, MPI_ERR_IO));
  CHECK_EQ(told, 2);
  CHECK_EQ(told_class, MPI_ERR_IO);
  MPI_Errhandler_free(&handler);
  CHECK_OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
  CHECK_CLASS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  CHECK_EQ(told, 2);
  CloseAndDelete(&file);
  /* Words say which file it was. */
  int code = MPI_File_open(ALL, "/nonexistent/file/name", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  MPI_Error_string(code, text, &length);
  if (!MpichDeviates("has lost the words of errors that another rank found")) CHECK(strstr(text, "/nonexistent/file/name") != NULL);
}

static void KnowsNoFileThatIsNotOpen(void) {
  MPI_File none = MPI_FILE_NULL;
  MPI_Offset size;
  CHECK_CLASS(MPI_File_get_size(none, &size), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_close(&none), MPI_ERR_FILE);
  CHECK_EQ(MPI_File_c2f(MPI_FILE_NULL), 0);
  CHECK(MPI_File_f2c(0) == MPI_FILE_NULL);
  MPI_File file = OpenNew("numbers", MPI_MODE_RDWR | MPI_MODE_CREATE);
  CHECK(MPI_File_f2c(MPI_File_c2f(file)) == file);
  CloseAndDelete(&file);
}

static void AppendsAtTheEnd(void) {
  MPI_File file = OpenNew("append", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Offset where = -1;
  CHECK_OK(MPI_File_set_size(file, 100));
  CHECK_OK(MPI_File_close(&file));
  CHECK_OK(MPI_File_open(ALL, file_name, MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL, &file));
  CHECK_OK(MPI_File_get_position(file, &where));
  CHECK_EQ(where, 100);
  CHECK_OK(MPI_File_get_position_shared(file, &where));
  CHECK_EQ(where, 100);
  CloseAndDelete(&file);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  OpensWhatIsThereAndMakesWhatIsNot();
  RefusesModesThatMakeNoSense();
  DeletesOnClose();
  TellsAndSetsSizes();
  MakesASparseFileOfFiveTerabytes();
  HasTheGroupOfItsCommunicator();
  ObeysAndTellsHints();
  TellsTheAccessStyleAsItWasGiven();
  TellsThatAFileThatCannotBeReadIsNotSieved();
  ReturnsErrorsAndTellsHandlers();
  KnowsNoFileThatIsNotOpen();
  AppendsAtTheEnd();
  return End();
}
