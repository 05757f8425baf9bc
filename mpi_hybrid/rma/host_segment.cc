#include "mpi_hybrid/rma/host_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/file_limit.h"

namespace weft::mpi::rma {
namespace {

constexpr size_t kPage = 4096;
constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::string FirstLine(const char* path) {
  char text[128];
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t length = read(fd, text, sizeof text);
  close(fd);
  return length <= 0 ? std::string() : std::string(text, static_cast<size_t>(length));
}

// Whether the kernel promises no more memory than it has. Looked up once: a window is made in less time than the file is read in.
bool CommitsStrictly() {
  static const bool strictly = std::string_view(FirstLine("/proc/sys/vm/overcommit_memory")).starts_with("2");
  return strictly;
}

// Neither changes while the process lives. Empty: it is not known.
std::string BootAndNamespaces() {
  struct stat pids, network;
  const std::string boot = FirstLine("/proc/sys/kernel/random/boot_id");
  if (boot.empty() || stat("/proc/self/ns/pid", &pids) != 0 || stat("/proc/self/ns/net", &network) != 0) return {};
  return boot + "/" + std::to_string(pids.st_ino) + "/" + std::to_string(network.st_ino) + "/";
}

}  // namespace

int ReserveMemory(int fd, uint64_t offset, size_t bytes) {
  struct sysinfo info;
  if (sysinfo(&info) == 0 && bytes > (info.totalram + info.totalswap) * info.mem_unit) return ENOMEM;
  return CommitsStrictly() ? posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes)) : 0;
}

HostSegment::~HostSegment() {
  Unmap();
  CloseDescriptor();
}

HostSegment::HostSegment(HostSegment&& other) noexcept { *this = std::move(other); }

HostSegment& HostSegment::operator=(HostSegment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void HostSegment::CloseDescriptor() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

void HostSegment::Unmap() {
  if (memory_ != nullptr) munmap(std::exchange(memory_, nullptr), bytes_);
}

int HostSegment::MapHere(size_t bytes, uint64_t offset) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return errno;
  memory_ = static_cast<uint8_t*>(memory);
  bytes_ = bytes;
  return 0;
}

int MakeMemoryFile(const char* name, uint64_t bytes, int* fd) {
  if (!MayMakeFile(bytes)) return EFBIG;
  *fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (*fd < 0) return errno;
  if (ftruncate(*fd, static_cast<off_t>(bytes)) == 0 && fcntl(*fd, F_ADD_SEALS, kSizeSeals) == 0) return 0;
  const int error = errno;
  close(std::exchange(*fd, -1));
  return error;
}

int HostSegment::Make(size_t bytes) {
  bytes = (bytes + kPage - 1) / kPage * kPage;
  int error = MakeMemoryFile("weft-mpi-window", bytes, &fd_);
  if (error != 0) return error;
  error = ReserveMemory(fd_, 0, bytes);
  if (error == 0) error = MapHere(bytes, 0);
  if (error != 0) CloseDescriptor();
  return error;
}

// Opens it into fd_, and says how long it is. An errno, with what was opened: it is none that nobody can make shorter.
int HostSegment::Open(pid_t pid, int fd, uint64_t* length) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) return errno;
  struct stat status;
  const int seals = fcntl(fd_, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd_, &status) != 0 || status.st_size < 0) return EINVAL;
  *length = static_cast<uint64_t>(status.st_size);
  return 0;
}

int HostSegment::Map(pid_t pid, int fd, size_t bytes) {
  bytes = (bytes + kPage - 1) / kPage * kPage;
  uint64_t length = 0;
  int error = Open(pid, fd, &length);
  if (error == 0) error = length != bytes ? EINVAL : MapHere(bytes, 0);
  CloseDescriptor();
  return error;
}

int HostSegment::MapPart(pid_t pid, int fd, const Nonce& cookie, uint64_t offset, size_t bytes) {
  uint64_t length = 0;
  Nonce found{};
  int error = Open(pid, fd, &length);
  if (error == 0 && (bytes == 0 || offset % kPage != 0 || offset > length || bytes > length - offset)) error = EINVAL;
  if (error == 0 && (pread(fd_, found.data(), found.size(), 0) != static_cast<ssize_t>(found.size()) || found != cookie)) error = ESRCH;
  if (error == 0) error = MapHere(bytes, offset);
  CloseDescriptor();
  return error;
}

uint64_t HostNumber() {
  static const std::string where = BootAndNamespaces();
  return where.empty() ? 0 : std::hash<std::string>()(where + std::to_string(geteuid())) | 1;
}

}  // namespace weft::mpi::rma
