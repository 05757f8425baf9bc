#ifndef PMI_SECRET_FILE_H_
#define PMI_SECRET_FILE_H_

#include <string>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// The first line of the file `path`, which a launcher and its ranks share. An error when there is none, or when others than its owner,
// who must be this user or root, can read it.
Result<std::string, PmiError> ReadSecretFile(const std::string& path);

}  // namespace weft::pmi

#endif  // PMI_SECRET_FILE_H_
