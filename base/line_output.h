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

// Lines for people, written to a descriptor that belongs to the program (its stderr), of which nothing may be assumed:
// it may be a pipe that nobody reads, a terminal that was stopped, the program's own connection since the program
// closed what was there. Write() never waits and never raises SIGPIPE. O_NONBLOCK is never set on the descriptor, since
// it would be set for everybody who has it.
//
// What there is no room for is kept, up to kMostKept bytes, and written by a thread that lives as long as something is
// kept; what is beyond is left out, and a line says how many were. Thread safe; a child after fork() starts with
// nothing kept.
class LineOutput {
 public:
  static constexpr size_t kMostKept = 1 << 18;
  // Longer ones are cut, so that a pipe takes each as a whole (PIPE_BUF).
  static constexpr size_t kLongest = 4096;

  // Remembers what `fd` is now: a socket that is there later is somebody's connection, and whatever comes to have the
  // number of a descriptor that was closed is a file of the program.
  explicit LineOutput(int fd);
  LineOutput(const LineOutput&) = delete;
  LineOutput& operator=(const LineOutput&) = delete;
  // Waits for nothing: what is kept is lost unless Drain() was called.
  ~LineOutput();

  // One line with its line break at the end. errno stays.
  void Write(std::string_view line);
  // Waits until nothing is kept, `limit` at most. False: something still is.
  bool Drain(std::chrono::milliseconds limit);

  // stderr's, which remembers what that was when the library was loaded.
  static LineOutput& Stderr();

 private:
  struct State;

  bool IsForUs(const struct stat& now) const;
  void Keep(std::string_view rest, bool first);
  void StartThread();

  const int fd_;
  bool was_open_ = false;
  struct stat at_start_ = {};
  std::shared_ptr<State> state_;  // the thread has it, too; another one after fork()
};

}  // namespace weft

#endif  // BASE_LINE_OUTPUT_H_
