#include "pmi/secret_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "pmi/named_file.h"

namespace weft::pmi {
namespace {

constexpr size_t kLongest = 1024;          // bytes of the line
constexpr size_t kLargestFile = 64 << 10;  // bytes: only the first line counts

std::string Octal(mode_t mode) {
  std::string digits;
  for (const int shift : {6, 3, 0}) digits += static_cast<char>('0' + ((mode >> shift) & 7));
  return digits;
}

}  // namespace

Result<std::string, PmiError> ReadSecretFile(const std::string& path) {
  const std::string name = "the file of the secret, " + path;
  auto file = ReadNamedFile(path, name, kLargestFile);
  if (!file) return file.error();
  const struct stat& status = file->status;
  std::string text = std::move(file->text);
  if ((status.st_mode & 077) != 0) return PmiError{name + ", can be read by others: mode " + Octal(status.st_mode) + "; chmod 600 it"};
  if (status.st_uid != geteuid() && status.st_uid != 0) return PmiError{name + ", belongs to user " + std::to_string(status.st_uid)};
  text.resize(std::min(text.find('\n'), text.size()));
  if (text.empty()) return PmiError{name + ", has an empty first line instead of a secret"};
  if (text.size() > kLongest) return PmiError{name + ", has a first line of more than " + std::to_string(kLongest) + " bytes"};
  return text;
}

}  // namespace weft::pmi
