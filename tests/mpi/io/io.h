/* What the programs about files share. */
#ifndef TESTS_MPI_IO_IO_H_
#define TESTS_MPI_IO_IO_H_

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../check.h"

static char file_name[512];

/* A name that no file has yet, the same at all ranks. */
static inline void NameFile(const char* what) {
  if (world_rank == 0) {
    const char* directory = getenv("TEST_TMPDIR");
    snprintf(file_name, sizeof file_name, "%s/%s_XXXXXX", directory != NULL ? directory : "/tmp", what);
    int fd = mkstemp(file_name);
    if (fd < 0) MPI_Abort(MPI_COMM_WORLD, 2);
    close(fd);
    unlink(file_name);
  }
  MPI_Bcast(file_name, sizeof file_name, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static inline MPI_File OpenNew(const char* what, int amode) {
  MPI_File file = MPI_FILE_NULL;
  NameFile(what);
  CHECK_OK(MPI_File_open(MPI_COMM_WORLD, file_name, amode, MPI_INFO_NULL, &file));
  return file;
}

static inline void CloseAndDelete(MPI_File* file) {
  CHECK_OK(MPI_File_close(file));
  CHECK(*file == MPI_FILE_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) CHECK_OK(MPI_File_delete(file_name, MPI_INFO_NULL));
  MPI_Barrier(MPI_COMM_WORLD);
}

/* What the file has, without MPI: bytes read into `buffer`. */
static inline long ReadPlain(void* buffer, size_t room) {
  int fd = open(file_name, O_RDONLY);
  long bytes = fd < 0 ? -1 : (long)read(fd, buffer, room);
  if (fd >= 0) close(fd);
  return bytes;
}

static inline int BytesOf(MPI_Status* status) {
  int count = -1;
  MPI_Get_count(status, MPI_BYTE, &count);
  return count;
}

#endif /* TESTS_MPI_IO_IO_H_ */
