#include "mpi_hybrid/io/posix_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/copy.h"

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

// The kernel copies what it reads by `rep movsb`, which AMD's Zen 3 and 4 do at a sixth of the speed where the destination begins 1 to 31 bytes
// behind the source, counted within a page (base/copy.h): that is what large buffers of malloc are to the pages of a file. Then it is read to a place that
// suits both copies, in parts that stay in the cache.
constexpr size_t kLeastAside = 8 << 10, kAside = 128 << 10, kPage = 4096, kBehind = 31;

bool ReadsSlowlyTo(const iovec& piece, int64_t offset) {
  const size_t behind = (reinterpret_cast<uintptr_t>(piece.iov_base) - static_cast<uintptr_t>(offset)) % kPage;
  return PosixFile::reads_aside && piece.iov_len >= kLeastAside && behind - 1 < kBehind;
}

bool IsZen3Or4() {
#ifdef __x86_64__
  return __builtin_cpu_init(), __builtin_cpu_is("amdfam19h");
#else
  return false;
#endif
}

// This thread's, of a page more than kAside bytes, at the beginning of a page; null: there is no memory for it.
uint8_t* AsideOfThread() {
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  thread_local const std::unique_ptr<uint8_t, Free> aside(static_cast<uint8_t*>(std::aligned_alloc(kPage, kAside + kPage)));
  return aside.get();
}

}  // namespace

bool PosixFile::reads_aside = IsZen3Or4();

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
  if (!pieces.empty() && ReadsSlowlyTo(pieces[0], offset)) {
    if (uint8_t* aside = AsideOfThread(); aside != nullptr) {
      aside += (static_cast<size_t>(offset) + kPage / 2) % kPage;
      const ssize_t read = pread(fd_, aside, std::min(pieces[0].iov_len, kAside), offset);
      if (read < 0) return -errno;
      CopyBytes(pieces[0].iov_base, aside, static_cast<size_t>(read));
      return read;
    }
  }
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
