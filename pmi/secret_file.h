#ifndef PMI_SECRET_FILE_H_
#define PMI_SECRET_FILE_H_

#include <string>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// Reads the first line of the file `path`, which a launcher and its ranks share. An error: there is no line, users
// other than the owner can read the file, or the owner is neither this user nor root.
Result<std::string, PmiError> ReadSecretFile(const std::string& path);

}  // namespace weft::pmi

#endif  // PMI_SECRET_FILE_H_
