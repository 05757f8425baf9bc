#ifndef MPI_HYBRID_HOST_MAPPING_H_
#define MPI_HYBRID_HOST_MAPPING_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace weft::mpi::host {

// Owns a mapping of memory, or none.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* address, size_t bytes) : address_(static_cast<uint8_t*>(address)), bytes_(bytes) {}
  // Of a part of a file that others map too. None, and errno: it cannot be mapped.
  static Mapping OfFile(int fd, uint64_t offset, size_t bytes, int flags = 0) {
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, static_cast<off_t>(offset));
    return at == MAP_FAILED ? Mapping() : Mapping(at, bytes);
  }
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (address_ != nullptr) munmap(address_, bytes_);
  }

  explicit operator bool() const { return address_ != nullptr; }
  uint8_t* data() const { return address_; }
  size_t size() const { return bytes_; }

 private:
  uint8_t* address_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_MAPPING_H_
