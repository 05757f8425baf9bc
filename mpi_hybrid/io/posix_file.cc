#include "mpi_hybrid/io/posix_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace weft::mpi::io {
namespace {

// Calls that a signal may interrupt before they did anything.
template <typename Call>
auto Retry(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

int PosixFile::Open(const std::string& path, int flags, unsigned mode, std::unique_ptr<RawFile>* file) {
  const int fd = Retry([&] { return open(path.c_str(), flags | O_CLOEXEC, mode); });
  if (fd < 0) return errno;
  std::unique_ptr<PosixFile> opened(new PosixFile(fd));
  struct stat status;
  if (fstat(fd, &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  *file = std::move(opened);
  return 0;
}

PosixFile::~PosixFile() { (void)Close(); }

// Of a call that was interrupted the descriptor is gone, too.
int PosixFile::Close() {
  const int fd = std::exchange(fd_, -1);
  return fd < 0 || close(fd) == 0 || errno == EINTR ? 0 : errno;
}

ssize_t PosixFile::ReadAt(std::span<const iovec> pieces, int64_t offset) {
  const ssize_t moved = preadv(fd_, pieces.data(), static_cast<int>(pieces.size()), offset);
  return moved < 0 ? -errno : moved;
}

ssize_t PosixFile::WriteAt(std::span<const iovec> pieces, int64_t offset) {
  const ssize_t moved = pwritev(fd_, pieces.data(), static_cast<int>(pieces.size()), offset);
  return moved < 0 ? -errno : moved;
}

int PosixFile::Size(int64_t* bytes) {
  struct stat status;
  if (fstat(fd_, &status) != 0) return errno;
  *bytes = status.st_size;
  return 0;
}

int PosixFile::Resize(int64_t bytes) { return Retry([&] { return ftruncate(fd_, bytes); }) == 0 ? 0 : errno; }

int PosixFile::Reserve(int64_t bytes) {
  int result;
  do {
    result = bytes > 0 ? posix_fallocate(fd_, 0, bytes) : 0;
  } while (result == EINTR);
  return result;
}

// What does not go to a device, such as a pipe, cannot be synchronised and need not be.
int PosixFile::Sync() {
  if (Retry([&] { return fsync(fd_); }) == 0 || errno == EINVAL) return 0;
  return errno;
}

int PosixFile::Lock(int64_t offset, int64_t bytes, bool exclusive) {
  return SetLock(offset, bytes, static_cast<short>(exclusive ? F_WRLCK : F_RDLCK));
}

int PosixFile::Unlock(int64_t offset, int64_t bytes) { return SetLock(offset, bytes, F_UNLCK); }

void PosixFile::Expect(bool random) { (void)posix_fadvise(fd_, 0, 0, random ? POSIX_FADV_RANDOM : POSIX_FADV_SEQUENTIAL); }

// Locks of the open file rather than of the process: a process may have the file open twice, and closing one must not drop the other's
// locks.
int PosixFile::SetLock(int64_t offset, int64_t bytes, short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = offset;
  lock.l_len = bytes;
  return Retry([&] { return fcntl(fd_, F_OFD_SETLKW, &lock); }) == 0 ? 0 : errno;
}

}  // namespace weft::mpi::io
