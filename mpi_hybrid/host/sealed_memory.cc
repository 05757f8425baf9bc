#include "mpi_hybrid/host/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "base/file_limit.h"
#include "mpi_hybrid/host/layout.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace weft::mpi::host {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// Whether the kernel promises no more memory than it has. Looked up once: a window is made in less time than the file is read in.
bool CommitsStrictly() {
  static const bool strictly = [] {
    char mode = 0;
    return std::ifstream("/proc/sys/vm/overcommit_memory") >> mode && mode == '2';
  }();
  return strictly;
}

}  // namespace

int MakeMemoryFile(const char* name, uint64_t bytes, Descriptor* file) {
  if (!MayMakeFile(bytes)) return EFBIG;
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  *file = Descriptor(memfd_create(name, kFlags | MFD_NOEXEC_SEAL));
  if (!*file && errno == EINVAL) *file = Descriptor(memfd_create(name, kFlags));  // before Linux 6.3
  if (!*file) return errno;
  if (ftruncate(file->get(), static_cast<off_t>(bytes)) == 0 && fcntl(file->get(), F_ADD_SEALS, kSizeSeals) == 0) return 0;
  const int error = errno;
  file->Close();
  return error;
}

bool IsSealed(int fd, uint64_t* length) {
  struct stat status;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &status) != 0 || status.st_size < 0) return false;
  *length = static_cast<uint64_t>(status.st_size);
  return true;
}

int ReserveMemory(int fd, uint64_t offset, size_t bytes) {
  struct sysinfo info;
  if (sysinfo(&info) == 0 && bytes > (info.totalram + info.totalswap) * info.mem_unit) return ENOMEM;
  return CommitsStrictly() ? posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes)) : 0;
}

int SealedMemory::MapHere(size_t bytes, uint64_t offset) {
  mapping_ = Mapping::OfFile(file_.get(), offset, bytes);
  return mapping_ ? 0 : errno;
}

int SealedMemory::Make(size_t bytes) {
  bytes = RoundUp(bytes, kPage);
  int error = MakeMemoryFile("weft-mpi-window", bytes, &file_);
  if (error != 0) return error;
  error = ReserveMemory(file_.get(), 0, bytes);
  if (error == 0) error = MapHere(bytes, 0);
  if (error != 0) CloseDescriptor();
  return error;
}

// Opens it into file_, and says how long it is. An errno, with what was opened: it is none that nobody can make shorter.
int SealedMemory::Open(pid_t pid, int fd, uint64_t* length) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  file_ = Descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!file_) return errno;
  return IsSealed(file_.get(), length) ? 0 : EINVAL;
}

int SealedMemory::Map(pid_t pid, int fd, size_t bytes) {
  bytes = RoundUp(bytes, kPage);
  uint64_t length = 0;
  int error = Open(pid, fd, &length);
  if (error == 0) error = length != bytes ? EINVAL : MapHere(bytes, 0);
  CloseDescriptor();
  return error;
}

int SealedMemory::MapPart(pid_t pid, int fd, const Nonce& cookie, uint64_t offset, size_t bytes) {
  uint64_t length = 0;
  Nonce found{};
  int error = Open(pid, fd, &length);
  if (error == 0 && (bytes == 0 || offset % kPage != 0 || offset > length || bytes > length - offset)) error = EINVAL;
  if (error == 0 && (pread(file_.get(), found.data(), found.size(), 0) != static_cast<ssize_t>(found.size()) || found != cookie)) error = ESRCH;
  if (error == 0) error = MapHere(bytes, offset);
  CloseDescriptor();
  return error;
}

}  // namespace weft::mpi::host
