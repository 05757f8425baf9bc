/* A disk that fails on purpose. The program's own preadv, pwritev, fsync, ftruncate and close stand before the C library's in all libraries that it
 * loads (it is linked with -rdynamic), and do what the kernel may do: they are interrupted, move less than they were asked for, take their time,
 * find no room. One program includes this. */
#ifndef TESTS_MPI_IO_FAULTY_DISK_H_
#define TESTS_MPI_IO_FAULTY_DISK_H_

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kMostPieces = 1024 };

static struct {
  unsigned seed;
  int interrupted, shortened, slow; /* how many of a thousand calls */
  int slow_microseconds;
  off_t room;     /* a byte at this offset or behind it finds no room; 0: there is room for all */
  int full_errno; /* what that is called: ENOSPC, EDQUOT */
  int close_errno; /* what the close of a regular file tells, which closes it; 0: nothing */
} disk;
static atomic_uint disk_draws;
static atomic_long disk_faults; /* that happened */

/* Below `bound`. Calls come from several threads. */
static unsigned DrawOfDisk(unsigned bound) {
  unsigned long long x = ((unsigned long long)disk.seed << 32 | atomic_fetch_add(&disk_draws, 1)) * 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9ull;
  return (unsigned)(x >> 33) % bound;
}

static int DiskHappens(int of_a_thousand) {
  if (of_a_thousand == 0 || (int)DrawOfDisk(1000) >= of_a_thousand) return 0;
  atomic_fetch_add(&disk_faults, 1);
  return 1;
}

static int IsInterrupted(void) {
  if (DiskHappens(disk.slow)) usleep(DrawOfDisk((unsigned)disk.slow_microseconds));
  if (!DiskHappens(disk.interrupted)) return 0;
  errno = EINTR;
  return 1;
}

typedef ssize_t MoveCall(int, const struct iovec*, int, off_t);

static ssize_t MoveSome(MoveCall* call, int fd, const struct iovec* pieces, int count, off_t offset, int writes) {
  struct iovec some[kMostPieces];
  size_t all = 0, limit;
  int used = 0;
  if (IsInterrupted()) return -1;
  for (int i = 0; i < count; i++) all += pieces[i].iov_len;
  limit = all > 1 && DiskHappens(disk.shortened) ? 1 + DrawOfDisk((unsigned)all - 1) : all;
  if (writes && disk.room != 0 && offset + (off_t)limit > disk.room) {
    atomic_fetch_add(&disk_faults, 1);
    if (offset >= disk.room) {
      errno = disk.full_errno;
      return -1;
    }
    limit = (size_t)(disk.room - offset);
  }
  for (; used < count && used < kMostPieces && limit > 0; used++) {
    some[used] = pieces[used];
    if (some[used].iov_len > limit) some[used].iov_len = limit;
    limit -= some[used].iov_len;
  }
  return call(fd, some, used, offset);
}

#define IN_FRONT __attribute__((visibility("default")))

IN_FRONT ssize_t preadv(int fd, const struct iovec* pieces, int count, off_t offset) {
  return MoveSome((MoveCall*)dlsym(RTLD_NEXT, "preadv"), fd, pieces, count, offset, 0);
}
IN_FRONT ssize_t pwritev(int fd, const struct iovec* pieces, int count, off_t offset) {
  return MoveSome((MoveCall*)dlsym(RTLD_NEXT, "pwritev"), fd, pieces, count, offset, 1);
}
IN_FRONT int fsync(int fd) { return IsInterrupted() ? -1 : ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd); }
IN_FRONT int ftruncate(int fd, off_t bytes) {
  return IsInterrupted() ? -1 : ((int (*)(int, off_t))dlsym(RTLD_NEXT, "ftruncate"))(fd, bytes);
}
IN_FRONT int close(int fd) {
  struct stat status;
  const int fails = disk.close_errno != 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  const int result = ((int (*)(int))dlsym(RTLD_NEXT, "close"))(fd);
  if (!fails || result != 0) return result;
  errno = disk.close_errno;
  return -1;
}

#endif /* TESTS_MPI_IO_FAULTY_DISK_H_ */
