#ifndef PMI_NAMED_FILE_H_
#define PMI_NAMED_FILE_H_

#include <sys/stat.h>

#include <cstddef>
#include <string>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// The types of file that a user may name. Reading a FIFO without a writer, a terminal or /dev/zero would never end.
enum class Accepts {
  kFiles,         // regular files
  // also a pipe, such as the shell's <(...) and /dev/stdin, which is read until its writers have closed it. Use it only
  // before signals are blocked: it may wait for a writer
  kFilesOrPipes,
};

struct NamedFile {
  std::string text;
  struct stat status;
};

// Reads the file that a user named, up to `longest` bytes; a larger file is an error. `what`: how messages name the
// file, such as "the host file hosts". The open does not wait (O_NONBLOCK) and does not take a controlling terminal.
Result<NamedFile, PmiError> ReadNamedFile(const std::string& path, const std::string& what, size_t longest, Accepts accepts = Accepts::kFiles);

// Why `path` must not be replaced by a file, or empty. The reason is that it is neither a regular file nor a symbolic
// link.
std::string ProblemOfReplacing(const std::string& path);

}  // namespace weft::pmi

#endif  // PMI_NAMED_FILE_H_
