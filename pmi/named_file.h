#ifndef PMI_NAMED_FILE_H_
#define PMI_NAMED_FILE_H_

#include <sys/stat.h>

#include <cstddef>
#include <string>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// What a user named may be of any type. A FIFO that nobody writes into, a terminal or /dev/zero would keep its reader for ever.
enum class Accepts {
  kFiles,         // regular files
  kFilesOrPipes,  // also a pipe, as the shell's <(...) and /dev/stdin are: it is read until its writers have closed it. Only before signals are
                  // blocked: one whose writer says nothing is waited for
};

struct NamedFile {
  std::string text;
  struct stat status;
};

// The content of the file that a user named, up to `longest` bytes; one that is larger is an error. `what` is the file in the words of
// a message, with its name: "the host file hosts". The open does not wait (O_NONBLOCK) and does not take a controlling terminal.
Result<NamedFile, PmiError> ReadNamedFile(const std::string& path, const std::string& what, size_t longest, Accepts accepts = Accepts::kFiles);

// Why a file may not be written in the place of `path`, or empty: something else than a regular file or a symbolic link is there.
std::string ProblemOfReplacing(const std::string& path);

}  // namespace weft::pmi

#endif  // PMI_NAMED_FILE_H_
