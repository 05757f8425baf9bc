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

}  // namespace

int ReserveMemory(int fd, uint64_t offset, size_t bytes) {
  struct sysinfo info;
  if (sysinfo(&info) == 0 && bytes > (info.totalram + info.totalswap) * info.mem_unit) return ENOMEM;
  if (std::string_view(FirstLine("/proc/sys/vm/overcommit_memory")).starts_with("2")) {
    return posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  }
  return 0;
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

int HostSegment::MapHere(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) return errno;
  memory_ = static_cast<uint8_t*>(memory);
  bytes_ = bytes;
  return 0;
}

int HostSegment::Make(size_t bytes) {
  bytes = (bytes + kPage - 1) / kPage * kPage;
  if (!MayMakeFile(bytes)) return EFBIG;
  fd_ = memfd_create("weft-mpi-window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd_ < 0) return errno;
  int error = ftruncate(fd_, static_cast<off_t>(bytes)) != 0 ? errno : ReserveMemory(fd_, 0, bytes);
  if (error == 0 && fcntl(fd_, F_ADD_SEALS, kSizeSeals) != 0) error = errno;
  if (error == 0) error = MapHere(bytes);
  if (error != 0) CloseDescriptor();
  return error;
}

int HostSegment::Map(pid_t pid, int fd, size_t bytes) {
  bytes = (bytes + kPage - 1) / kPage * kPage;
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) return errno;
  struct stat status;
  int error = 0;
  const int seals = fcntl(fd_, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd_, &status) != 0) {
    error = EINVAL;
  } else if (status.st_size < 0 || static_cast<size_t>(status.st_size) != bytes) {
    error = EINVAL;
  } else {
    error = MapHere(bytes);
  }
  CloseDescriptor();
  return error;
}

uint64_t HostNumber() {
  struct stat space;
  const std::string boot = FirstLine("/proc/sys/kernel/random/boot_id");
  if (boot.empty() || stat("/proc/self/ns/pid", &space) != 0) return 0;
  const std::string all = boot + "/" + std::to_string(space.st_ino) + "/" + std::to_string(geteuid());
  return std::hash<std::string>()(all) | 1;
}

}  // namespace weft::mpi::rma
