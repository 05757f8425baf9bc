#ifndef MPI_HYBRID_CORE_DESCRIPTOR_H_
#define MPI_HYBRID_CORE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace weft::mpi {

// Owns a file descriptor, or none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { Close(); }

  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_DESCRIPTOR_H_
