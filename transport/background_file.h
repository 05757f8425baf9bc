#ifndef TRANSPORT_BACKGROUND_FILE_H_
#define TRANSPORT_BACKGROUND_FILE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weft::transport {

// A file, pipe or FIFO that is written by a thread of its own, so that a slow disk, or a reader that does not read,
// holds up nobody else. Thread safe. Of the process that made it: a child after fork() only destroys it.
class BackgroundFile {
 public:
  // Bytes that may wait to be written.
  static constexpr size_t kMostWaiting = 64 << 20;

  // Owns `fd`, which does not block unless it is a regular file. `name` is for warnings: an error is said once, and
  // what comes later counts for nothing.
  BackgroundFile(int fd, std::string name, size_t most_waiting = kMostWaiting);
  // What waits is lost unless Sync() was called.
  ~BackgroundFile();
  BackgroundFile(const BackgroundFile&) = delete;
  BackgroundFile& operator=(const BackgroundFile&) = delete;

  // Takes all of `bytes`, whose storage it gives back empty, or none. Waits for nothing.
  void Append(std::vector<uint8_t>& bytes);
  // Waits until all is written, as long as something is within any `patience`; says how much was left out. False:
  // something is not written.
  bool Sync(std::chrono::milliseconds patience);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // the thread has it, too
};

}  // namespace weft::transport

#endif  // TRANSPORT_BACKGROUND_FILE_H_
