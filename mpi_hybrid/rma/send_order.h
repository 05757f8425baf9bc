#ifndef MPI_HYBRID_RMA_SEND_ORDER_H_
#define MPI_HYBRID_RMA_SEND_ORDER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace weft::mpi::rma {

// Tracks how many of the work requests of a send queue, numbered from 1, have completed. Verbs promise completions in
// the order of posting, but Linux's siw reports a Write or Send before an earlier Read. This class relies on the
// following: Reads complete in order among themselves, and so do the other requests; the completion of a Read implies
// that of all requests posted before it. Every Read must be signaled.
class SendOrder {
 public:
  static constexpr size_t kMostReads = 128;  // outstanding Reads

  void ReadPosted(uint64_t number) {
    WEFT_CHECK(posted_reads_ - completed_reads_ < kMostReads);
    reads_[posted_reads_++ % kMostReads] = number;
  }

  void Completed(uint64_t number) {
    newest_ = std::max(newest_, number);
    if (ReadIsOutstanding() && OldestRead() == number) ++completed_reads_;
    completed_ = ReadIsOutstanding() ? std::min(newest_, OldestRead() - 1) : newest_;
  }

  // The number of the last request that has completed together with all requests before it.
  uint64_t completed() const { return completed_; }

 private:
  bool ReadIsOutstanding() const { return completed_reads_ != posted_reads_; }
  uint64_t OldestRead() const { return reads_[completed_reads_ % kMostReads]; }

  uint64_t newest_ = 0, completed_ = 0;
  std::array<uint64_t, kMostReads> reads_{};  // outstanding Reads, a ring
  uint64_t posted_reads_ = 0, completed_reads_ = 0;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_SEND_ORDER_H_
