#include "pmi/launch/host_file.h"

namespace weft::pmi {

Result<std::vector<HostSlots>, PmiError> ReadHostFile(const std::string& path, Accepts accepts) {
  const auto file = ReadNamedFile(path, "the host file " + path, kLargestHostFile, accepts);
  if (!file) return file.error();
  return ParseHostFile(file->text, path);
}

}  // namespace weft::pmi
