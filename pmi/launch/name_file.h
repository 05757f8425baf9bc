#ifndef PMI_LAUNCH_NAME_FILE_H_
#define PMI_LAUNCH_NAME_FILE_H_

#include <string>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// Where a name server is, and what it wants its callers to know: a file of one line,
//
//   weft-nameserver PORT SECRET ADDRESS...
//
// that only its owner can read (0600). One that others can read, or that is another user's, is refused.
struct NameFile {
  std::string port;
  std::string secret;
  std::vector<std::string> addresses;

  // Puts it there at once, in the place of one that is there. Empty, or why not.
  std::string Write(const std::string& path) const;
  static Result<NameFile, PmiError> Read(const std::string& path);
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_NAME_FILE_H_
