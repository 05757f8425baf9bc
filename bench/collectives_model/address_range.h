#ifndef BENCH_COLLECTIVES_MODEL_ADDRESS_RANGE_H_
#define BENCH_COLLECTIVES_MODEL_ADDRESS_RANGE_H_

#include <sys/mman.h>

#include <cstddef>

#include "base/check.h"

namespace weft::bench {

// Addresses without memory. They stand for the buffers of a rank in schedules that are not carried out on data.
class AddressRange {
 public:
  explicit AddressRange(size_t bytes)
      : bytes_(bytes), begin_(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    WEFT_CHECK(begin_ != MAP_FAILED);
  }
  ~AddressRange() { munmap(begin_, bytes_); }
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

  void* begin() const { return begin_; }

 private:
  const size_t bytes_;
  void* const begin_;
};

}  // namespace weft::bench

#endif  // BENCH_COLLECTIVES_MODEL_ADDRESS_RANGE_H_
