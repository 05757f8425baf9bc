#include "pmi/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weft::pmi {
namespace {

constexpr size_t kLongest = 1024;  // bytes of the line

std::string Octal(mode_t mode) {
  std::string digits;
  for (const int shift : {6, 3, 0}) digits += static_cast<char>('0' + ((mode >> shift) & 7));
  return digits;
}

}  // namespace

Result<std::string, PmiError> ReadSecretFile(const std::string& path) {
  const std::string name = "the file of the secret, " + path + ",";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return PmiError{name + " cannot be opened: " + std::strerror(errno)};
  struct stat status {};
  std::string text(kLongest + 1, '\0');
  const bool is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  const ssize_t count = is_file ? read(fd, text.data(), text.size()) : 0;
  close(fd);
  if (!is_file || count < 0) return PmiError{name + " is no file that can be read"};
  if ((status.st_mode & 077) != 0) return PmiError{name + " can be read by others: mode " + Octal(status.st_mode) + "; chmod 600 it"};
  if (status.st_uid != geteuid() && status.st_uid != 0) return PmiError{name + " belongs to user " + std::to_string(status.st_uid)};
  text.resize(static_cast<size_t>(count));
  text.resize(std::min(text.find('\n'), text.size()));
  if (text.empty()) return PmiError{name + " has an empty first line, where a secret belongs"};
  if (text.size() > kLongest) return PmiError{name + " has a first line of more than " + std::to_string(kLongest) + " bytes"};
  return text;
}

}  // namespace weft::pmi
