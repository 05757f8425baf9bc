#ifndef TRANSPORT_BACKGROUND_FILE_H_
#define TRANSPORT_BACKGROUND_FILE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weft::transport {

// A file, pipe or FIFO that a thread of its own writes, so that a slow disk, or a reader that does not read, blocks no
// other thread. Thread safe. Belongs to the process that made it: a child of fork() may only destroy it.
class BackgroundFile {
 public:
  // Maximum number of bytes that wait to be written.
  static constexpr size_t kMostWaiting = 64 << 20;

  // Owns `fd`, which must not block unless it is a regular file. `name` is for warnings: the first error is reported
  // once, and further data is ignored.
  BackgroundFile(int fd, std::string name, size_t most_waiting = kMostWaiting);
  // Waiting data is lost unless Sync() was called.
  ~BackgroundFile();
  BackgroundFile(const BackgroundFile&) = delete;
  BackgroundFile& operator=(const BackgroundFile&) = delete;

  // Takes all of `bytes` and returns its storage empty, or takes nothing. Does not wait.
  void Append(std::vector<uint8_t>& bytes);
  // Waits until everything is written, as long as some data is written within each `patience`. Reports how much was
  // left out. Returns false if something is not written.
  bool Sync(std::chrono::milliseconds patience);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with the thread
};

}  // namespace weft::transport

#endif  // TRANSPORT_BACKGROUND_FILE_H_
