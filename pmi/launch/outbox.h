#ifndef PMI_LAUNCH_OUTBOX_H_
#define PMI_LAUNCH_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::pmi {

// Bytes to be written to a descriptor that may not accept them at once.
class Outbox {
 public:
  void Add(std::string_view bytes) { bytes_.append(bytes); }
  bool empty() const { return bytes_.size() == done_; }
  size_t size() const { return bytes_.size() - done_; }
  void Clear() {
    bytes_.clear();
    done_ = 0;
  }
  // Writes as much as `fd` accepts, at most `most` bytes. Returns 0, or the errno after which further attempts are
  // useless (not EAGAIN or EINTR).
  int WriteTo(int fd, size_t most = SIZE_MAX);

 private:
  std::string bytes_;
  size_t done_ = 0;
};

// Reads available data, at most `most` bytes. Returns the number of bytes, 0 at the end of the stream, or -errno
// (-EAGAIN: nothing now).
long ReadSome(int fd, char* into, size_t most);

void SetNonBlocking(int fd);
void SetCloseOnExec(int fd);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_OUTBOX_H_
