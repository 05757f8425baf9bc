#ifndef PMI_LAUNCH_HOST_FILE_H_
#define PMI_LAUNCH_HOST_FILE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"
#include "pmi/launch/placement.h"
#include "pmi/named_file.h"

namespace weft::pmi {

inline constexpr size_t kLargestHostFile = 16 << 20;  // bytes: 65,536 hosts with names of 253 bytes, and a number

// ParseHostFile() of the file `path`. Also an error: it cannot be read, or is larger than kLargestHostFile.
Result<std::vector<HostSlots>, PmiError> ReadHostFile(const std::string& path, Accepts accepts);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_HOST_FILE_H_
