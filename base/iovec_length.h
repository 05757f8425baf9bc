#ifndef BASE_IOVEC_LENGTH_H_
#define BASE_IOVEC_LENGTH_H_

#include <sys/uio.h>

#include <cstddef>
#include <span>

namespace weft {

// Sum of the lengths of all pieces, in bytes.
inline size_t TotalLength(std::span<const iovec> pieces) {
  size_t total = 0;
  for (const iovec& piece : pieces) total += piece.iov_len;
  return total;
}

}  // namespace weft

#endif  // BASE_IOVEC_LENGTH_H_
