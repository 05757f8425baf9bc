#include "tools/weft/program.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

namespace weft::tool {
namespace {

bool IsExecutableFile(const std::string& path) {
  struct stat file {};
  return stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) && access(path.c_str(), X_OK) == 0;
}

template <typename Header>
bool ReadAt(std::ifstream& file, uint64_t offset, Header* header) {
  file.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(file.read(reinterpret_cast<char*>(header), sizeof *header));
}

}  // namespace

std::string FindProgram(const std::string& program) {
  if (program.find('/') != std::string::npos) return IsExecutableFile(program) ? program : "";
  const char* path = std::getenv("PATH");
  const std::string_view folders = path == nullptr ? "/bin:/usr/bin" : path;
  for (size_t from = 0; from <= folders.size();) {
    const size_t end = std::min(folders.find(':', from), folders.size());
    const std::string file = (end == from ? "." : std::string(folders.substr(from, end - from))) + "/" + program;
    if (!program.empty() && IsExecutableFile(file)) return file;
    from = end + 1;
  }
  return "";
}

std::string WhyLibrariesAreIgnored(const std::string& file) {
  struct stat attributes {};
  if (stat(file.c_str(), &attributes) != 0) return "";
  const bool other_user = (attributes.st_mode & S_ISUID) != 0 && attributes.st_uid != getuid();
  const bool other_group = (attributes.st_mode & S_ISGID) != 0 && attributes.st_gid != getgid();
  if (other_user) return "has the set-user-ID bit";
  if (other_group) return "has the set-group-ID bit";
  std::ifstream bytes(file, std::ios::binary);
  Elf64_Ehdr head{};
  if (!ReadAt(bytes, 0, &head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return "";
  if (head.e_ident[EI_CLASS] != ELFCLASS64) return "is a 32-bit program";
  for (int i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!ReadAt(bytes, head.e_phoff + static_cast<uint64_t>(i) * head.e_phentsize, &segment)) return "";
    if (segment.p_type == PT_INTERP) return "";
  }
  return "is linked statically";
}

}  // namespace weft::tool
