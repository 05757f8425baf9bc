#include "mpi_hybrid/coll/common_directory.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace weft::mpi {
namespace {

std::string NameOf(uint64_t mark) {
  char name[40];
  std::snprintf(name, sizeof name, ".weft-nbhd-%016llx", static_cast<unsigned long long>(mark));
  return name;
}

}  // namespace

SeenDirectory::SeenDirectory(const std::string& path)
    : fd_(path.empty() ? -1 : open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  struct stat status {};
  if (fd_ < 0 || fstat(fd_, &status) != 0) return;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

SeenDirectory::~SeenDirectory() {
  if (mark_ != 0) unlinkat(fd_, NameOf(mark_).c_str(), 0);
  if (fd_ >= 0) close(fd_);
}

uint64_t SeenDirectory::LeaveMark() {
  uint64_t mark = 0;
  if (fd_ < 0 || mark_ != 0 || getrandom(&mark, sizeof mark, 0) != sizeof mark || mark == 0) return mark_;
  const int file = openat(fd_, NameOf(mark).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return 0;
  close(file);
  return mark_ = mark;
}

bool SeenDirectory::HasMark(uint64_t mark) const {
  struct stat status {};
  return mark != 0 && fd_ >= 0 && fstatat(fd_, NameOf(mark).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

std::vector<size_t> PartsOf(size_t count, const std::vector<bool>& sees) {
  std::vector<size_t> part(count);
  std::iota(part.begin(), part.end(), size_t{0});
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) {
      if (!sees[i * count + j] || part[i] == part[j]) continue;
      const auto [kept, merged] = std::minmax(part[i], part[j]);
      std::replace(part.begin(), part.end(), size_t{merged}, size_t{kept});
    }
  }
  return part;
}

}  // namespace weft::mpi
