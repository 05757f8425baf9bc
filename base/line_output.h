#ifndef BASE_LINE_OUTPUT_H_
#define BASE_LINE_OUTPUT_H_

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace weft {

// Writes lines for people to a descriptor that belongs to the program (its stderr). Nothing may be assumed about it: it
// may be a pipe that nobody reads, a stopped terminal, or, after the program closed the original file, one of its
// connections. Write() never waits and never raises SIGPIPE. O_NONBLOCK is never set on the descriptor, because that
// would change it for every process that shares it.
//
// Lines that do not fit now are kept, up to kMostKept bytes. A thread writes them; it lives as long as something is
// kept. Further lines are dropped, and a line tells how many. Thread safe. A child of fork() starts with nothing kept.
class LineOutput {
 public:
  static constexpr size_t kMostKept = 1 << 18;
  // Longer lines are cut, so that a pipe takes each line as a whole (PIPE_BUF).
  static constexpr size_t kLongest = 4096;

  // Remembers what `fd` is now. If it is later another socket, nothing is written: that may be a connection of the
  // program. If `fd` is closed now, a pipe or file that later gets its number belongs to the program, and nothing is
  // written to it, except to a file that is opened for appending, as a log is.
  explicit LineOutput(int fd);
  LineOutput(const LineOutput&) = delete;
  LineOutput& operator=(const LineOutput&) = delete;
  // Does not wait. Kept lines are lost unless Drain() was called.
  ~LineOutput();

  // Writes one line, which ends with a line break. errno does not change.
  void Write(std::string_view line);
  // Waits until nothing is kept, at most `limit`. Returns false if something is still kept.
  bool Drain(std::chrono::milliseconds limit);

  // The output for stderr, as it was when the library was loaded.
  static LineOutput& Stderr();

 private:
  struct State;

  bool IsForUs(const struct stat& now) const;
  void Keep(std::string_view rest, bool first);
  void StartThread();

  const int fd_;
  bool was_open_ = false;
  struct stat at_start_ = {};
  std::shared_ptr<State> state_;  // shared with the thread; a new one after fork()
};

}  // namespace weft

#endif  // BASE_LINE_OUTPUT_H_
