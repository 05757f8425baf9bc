#ifndef PMI_LAUNCH_NAME_FILE_H_
#define PMI_LAUNCH_NAME_FILE_H_

#include <string>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// The address of a name server and the secret that its callers must know: a file of one line,
//
//   weft-nameserver PORT SECRET ADDRESS...
//
// which only its owner can read (0600). A file that others can read, or that belongs to another user, is refused.
struct NameFile {
  std::string port;
  std::string secret;
  std::vector<std::string> addresses;

  // Writes the file atomically, replacing an existing one. Returns a description of the error, or empty.
  std::string Write(const std::string& path) const;
  static Result<NameFile, PmiError> Read(const std::string& path);
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_NAME_FILE_H_
