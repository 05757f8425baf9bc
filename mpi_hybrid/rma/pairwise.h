#ifndef MPI_HYBRID_RMA_PAIRWISE_H_
#define MPI_HYBRID_RMA_PAIRWISE_H_

#include <sys/uio.h>

#include <algorithm>
#include <cstdint>

#include "mpi_hybrid/datatype/datatype.h"

namespace weft::mpi::rma {

// Walks over two memories in parallel: returns the next bytes that are contiguous on both sides.
class Pairwise {
 public:
  Pairwise(TypeCursor& here, TypeCursor& there, size_t bytes, uint64_t longest)
      : here_(here), there_(there), left_(bytes), longest_(longest) {}
  bool Next(uint8_t** here, uint64_t* there, size_t* bytes) {
    if (left_ == 0) return false;
    const size_t limit = std::min<uint64_t>(left_, longest_);
    if (a_.iov_len == 0) here_.Next({&a_, 1}, limit);
    if (b_.iov_len == 0) there_.Next({&b_, 1}, limit);
    *bytes = std::min(a_.iov_len, b_.iov_len);
    *here = Address(a_);
    *there = reinterpret_cast<uint64_t>(b_.iov_base);
    for (iovec* piece : {&a_, &b_}) *piece = {Address(*piece) + *bytes, piece->iov_len - *bytes};
    left_ -= *bytes;
    return *bytes != 0;
  }

 private:
  static uint8_t* Address(const iovec& piece) { return static_cast<uint8_t*>(piece.iov_base); }

  TypeCursor &here_, &there_;
  size_t left_;
  const uint64_t longest_;
  iovec a_{}, b_{};
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_PAIRWISE_H_
