#ifndef IMPI_TESTER_RUN_CHILD_H_
#define IMPI_TESTER_RUN_CHILD_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"

namespace weft::impi::tester {

// The implementation under test, as a child process in a process group of its own. It ends with this object: SIGTERM,
// and SIGKILL after a few seconds.
class Child {
 public:
  static constexpr size_t kMostOutput = 64
                                        << 10;  // bytes that are kept of its output; what follows is read and dropped

  // `words`: the command line; the program is searched for in PATH. `environment`: variables that are set; with nullopt
  // those that are not. Why not: a sentence.
  static Result<std::unique_ptr<Child>, std::string> Start(
      const std::vector<std::string>& words,
      const std::vector<std::pair<std::string, std::optional<std::string>>>& environment);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // To be watched for input. Read() when one of the first two has some, Reap() when the third has.
  int standard_output() const { return output_[0].get(); }
  int standard_error() const { return output_[1].get(); }
  int end() const { return pidfd_.get(); }
  void Read();
  void Reap();

  // Its exit status, or 128 and the signal that ended it.
  std::optional<int> status() const { return status_; }
  const std::string& output(bool error) const { return texts_[error ? 1 : 0]; }

 private:
  Child(pid_t pid, Descriptor pidfd, Descriptor output, Descriptor error);

  const pid_t pid_;
  Descriptor pidfd_;
  Descriptor output_[2];
  std::string texts_[2];
  std::optional<int> status_;
};

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_RUN_CHILD_H_
