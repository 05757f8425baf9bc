#ifndef BASE_DESCRIPTOR_H_
#define BASE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

#include "base/uncancelled.h"

namespace weft {

// Owns a file descriptor and closes it.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = other.Release();
    }
    return *this;
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Close() {
    if (fd_ >= 0) uncancelled::Close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

}  // namespace weft

#endif  // BASE_DESCRIPTOR_H_
