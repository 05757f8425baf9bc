#include "pmi/named_file.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/descriptor.h"

namespace weft::pmi {
namespace {

constexpr size_t kBlock = 64 << 10;  // bytes

std::string TypeOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "a file";
    case S_IFIFO:
      return "a pipe";
    case S_IFDIR:
      return "a directory";
    case S_IFSOCK:
      return "a socket";
    default:
      return "a device";
  }
}

bool Fits(mode_t mode, Accepts accepts) { return S_ISREG(mode) || (S_ISFIFO(mode) && accepts == Accepts::kFilesOrPipes); }

// Appends what there is, up to `longest` bytes and one more. 0, or the errno.
int ReadInto(std::string* text, int fd, size_t longest) {
  while (text->size() <= longest) {
    const size_t had = text->size();
    text->resize(std::min(had + kBlock, longest + 1));
    const ssize_t count = read(fd, text->data() + had, text->size() - had);
    const int error = count < 0 ? errno : 0;
    text->resize(had + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return 0;
    if (error == EAGAIN) {
      pollfd entry{fd, POLLIN, 0};
      poll(&entry, 1, -1);
    } else if (error != 0 && error != EINTR) {
      return error;
    }
  }
  return 0;
}

}  // namespace

Result<NamedFile, PmiError> ReadNamedFile(const std::string& path, const std::string& what, size_t longest, Accepts accepts) {
  const auto failure = [&](const std::string& why) { return PmiError{"cannot read " + what + ": " + why}; };
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd) return failure(errno == ENXIO ? "it is a socket, or a device that does not work" : std::strerror(errno));
  NamedFile file{};
  if (fstat(fd.get(), &file.status) != 0) return failure(std::strerror(errno));
  if (!Fits(file.status.st_mode, accepts)) return failure("it is " + TypeOf(file.status.st_mode) + ", not a file");
  if (const int error = ReadInto(&file.text, fd.get(), longest); error != 0) return failure(std::strerror(error));
  if (file.text.size() > longest) return failure("it is larger than " + std::to_string(longest) + " bytes");
  return file;
}

std::string ProblemOfReplacing(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode) || S_ISLNK(status.st_mode)) return {};
  return "it is " + TypeOf(status.st_mode) + ", not a file";
}

}  // namespace weft::pmi
