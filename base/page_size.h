#ifndef BASE_PAGE_SIZE_H_
#define BASE_PAGE_SIZE_H_

#include <unistd.h>

#include <cstddef>

namespace weft {

// Size of a page of the kernel in bytes: 4 KiB on x86-64; 4, 16 or 64 KiB on arm64. mmap(2) takes addresses and offsets
// that are multiples of it.
inline size_t PageSize() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace weft

#endif  // BASE_PAGE_SIZE_H_
