#ifndef PMI_LAUNCH_INPUT_H_
#define PMI_LAUNCH_INPUT_H_

#include <cstddef>
#include <string>

namespace weft::pmi {

// mpiexec's standard input on its way to rank 0: no more is read than rank 0 has room for, and nothing from a terminal that other
// programs have.
class Input {
 public:
  static constexpr size_t kWindow = 64 * 1024;  // bytes read that rank 0 has not yet taken

  explicit Input(int fd) : fd_(fd) {}

  // The descriptor to wait for, or -1: not now.
  int fd_to_watch() const;
  // Whether a terminal has to be looked at again later, since nothing will announce that it is ours.
  bool waits_for_terminal() const;
  // What can be read now; empty at the end, after which nothing is watched any more.
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
