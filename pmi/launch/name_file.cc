#include "pmi/launch/name_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "pmi/named_file.h"
#include "pmi/wire/message.h"

namespace weft::pmi {
namespace {

constexpr char kName[] = "weft-nameserver";
constexpr size_t kLongest = 16 * 1024;

}  // namespace

std::string NameFile::Write(const std::string& path) const {
  std::string line = std::string(kName) + " " + port + " " + secret;
  for (const std::string& address : addresses) line += " " + address;
  line += "\n";
  if (const std::string problem = ProblemOfReplacing(path); !problem.empty()) return "cannot write the name server's file " + path + ": " + problem;
  const std::string made = path + "." + std::to_string(getpid());
  const int fd = open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool good = fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (fd >= 0) close(fd);
  good = good && rename(made.c_str(), path.c_str()) == 0;
  if (good) return {};
  const std::string why = std::strerror(errno);
  unlink(made.c_str());
  return "cannot write the name server's file " + path + ": " + why;
}

Result<NameFile, PmiError> NameFile::Read(const std::string& path) {
  const auto read = ReadNamedFile(path, "the name server's file " + path, kLongest);
  if (!read) return read.error();
  const struct stat& status = read->status;
  if (status.st_uid != geteuid() || (status.st_mode & 077) != 0) {
    return PmiError{"the name server's file " + path + " belongs to another user, or others can read it: mode " +
                    std::to_string((status.st_mode >> 6) & 7) + std::to_string((status.st_mode >> 3) & 7) + std::to_string(status.st_mode & 7)};
  }
  std::istringstream words(read->text);
  std::string name;
  NameFile file;
  words >> name >> file.port >> file.secret;
  for (std::string address; words >> address;) file.addresses.push_back(address);
  if (name == kName && !file.addresses.empty()) return file;
  return PmiError{"the file " + path + " was not written by mpiexec -nameserver-run: '" + Printable(read->text) + "'"};
}

}  // namespace weft::pmi
