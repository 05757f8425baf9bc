#ifndef PMI_ERROR_H_
#define PMI_ERROR_H_

#include <string>

namespace weft::pmi {

// Why an operation failed: a sentence.
struct PmiError {
  std::string message;
};

// Why a process or the job cannot be started, and the exit status for that.
struct LaunchError {
  int exit_code;
  std::string message;
};

}  // namespace weft::pmi

#endif  // PMI_ERROR_H_
