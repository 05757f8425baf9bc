/* While one thread waits for the disk (MPI_File_sync, _preallocate, _set_size, _set_info, _open, _delete), another one exchanges messages: each call of the C library
 * returns only when that has been done. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "threads.h"

enum { kExchanges = 20, kMostSteps = 20000, kStep = 1000 /* microseconds */ };

static atomic_long exchanges;
static atomic_int over, waited;
static _Thread_local int waits_for_disk;

/* The disk is slow: it is done once the other thread has had its messages. */
static void AwaitExchanges(void) {
  if (!waits_for_disk || MpichDeviates("holds its lock meanwhile")) return;
  const long before = exchanges;
  int steps = 0;
  while (exchanges < before + kExchanges && steps < kMostSteps) {
    usleep(kStep);
    ++steps;
  }
  CHECK(steps < kMostSteps);
  ++waited;
}

/* Before the C library's. */
#define IN_FRONT __attribute__((visibility("default")))
IN_FRONT int fsync(int fd) {
  AwaitExchanges();
  return (int)syscall(SYS_fsync, fd);
}
IN_FRONT int posix_fallocate(int fd, off_t offset, off_t bytes) {
  AwaitExchanges();
  return syscall(SYS_fallocate, fd, 0, offset, bytes) == 0 ? 0 : ftruncate(fd, offset + bytes);
}
IN_FRONT int posix_fallocate64(int fd, off_t offset, off_t bytes) { return posix_fallocate(fd, offset, bytes); }
IN_FRONT int ftruncate(int fd, off_t bytes) {
  AwaitExchanges();
  return (int)syscall(SYS_ftruncate, fd, bytes);
}
IN_FRONT int ftruncate64(int fd, off_t bytes) { return ftruncate(fd, bytes); }
IN_FRONT int posix_fadvise(int fd, off_t offset, off_t bytes, int advice) {
  AwaitExchanges();
  return syscall(SYS_fadvise64, fd, offset, bytes, advice) == 0 ? 0 : errno;
}
IN_FRONT int posix_fadvise64(int fd, off_t offset, off_t bytes, int advice) { return posix_fadvise(fd, offset, bytes, advice); }
IN_FRONT int unlink(const char* path) {
  AwaitExchanges();
  return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
IN_FRONT int open(const char* path, int flags, ...) {
  va_list words;
  va_start(words, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(words, int) : 0;
  va_end(words);
  if (strstr(path, "weft_slow_disk") != NULL) AwaitExchanges();
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void* Exchange(void* unused) {
  while (!over) {
    int value = 0;
    MPI_Sendrecv_replace(&value, 1, MPI_INT, world_rank, 3, world_rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ++exchanges;
  }
  return unused;
}

int main(int argc, char** argv) {
  pthread_t thread;
  MPI_File file;
  MPI_Info info;
  char path[256], byte = 1;
  BeginThreads(&argc, &argv);
  snprintf(path, sizeof path, "%s/weft_slow_disk.%d.%d", getenv("TEST_TMPDIR") != NULL ? getenv("TEST_TMPDIR") : "/tmp", (int)getpid(), world_rank);
  pthread_create(&thread, NULL, Exchange, NULL);
  waits_for_disk = 1;
  CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
  CHECK_OK(MPI_File_set_size(file, 100));
  CHECK_OK(MPI_File_preallocate(file, 8192));
  CHECK_OK(MPI_File_write_at(file, 0, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK_OK(MPI_File_sync(file));
  CHECK_OK(MPI_Info_create(&info));
  CHECK_OK(MPI_Info_set(info, "access_style", "random"));
  CHECK_OK(MPI_File_set_info(file, info));
  CHECK_OK(MPI_Info_free(&info));
  CHECK_OK(MPI_File_close(&file));
  CHECK_OK(MPI_File_delete(path, MPI_INFO_NULL));
  waits_for_disk = 0;
  if (!MpichDeviates("holds its lock meanwhile")) CHECK(waited >= 6);
  over = 1;
  pthread_join(thread, NULL);
  return End();
}
