#ifndef PMI_LAUNCH_INPUT_H_
#define PMI_LAUNCH_INPUT_H_

#include <cstddef>
#include <string>

namespace weft::pmi {

// mpiexec's standard input for rank 0. It reads no more than rank 0 can take, and nothing from a terminal while other
// programs have it.
class Input {
 public:
  static constexpr size_t kWindow = 64 * 1024;  // limit for bytes that were read and not yet taken by rank 0

  explicit Input(int fd) : fd_(fd) {}

  // The descriptor to wait for; -1: none at present.
  int fd_to_watch() const;
  // Whether a terminal must be checked again later, since no event tells that this process is in the foreground.
  bool waits_for_terminal() const;
  // Returns the data that can be read now; empty at the end of the input, after which nothing is watched.
  std::string Read();
  void Taken(size_t bytes) { unread_ -= bytes < unread_ ? bytes : unread_; }
  void Close() { open_ = false; }

 private:
  bool IsForeground() const;

  const int fd_;
  bool open_ = true;
  size_t unread_ = 0;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_INPUT_H_
