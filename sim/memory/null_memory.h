#ifndef SIM_MEMORY_NULL_MEMORY_H_
#define SIM_MEMORY_NULL_MEMORY_H_

#include <cstdint>

namespace weft::sim {

// Memory for ibv_alloc_null_mr, kMaxMessage bytes: reads return zeros, and writes are lost. It takes address space, but
// hardly any memory. Made on first use and never freed.
class NullMemory {
 public:
  static const NullMemory& Process();

  // False: the process has no address space left.
  bool available() const { return zeroes_ != nullptr && sink_ != nullptr; }
  // The memory for `write` false is never written; that for true is never read.
  uint8_t* Bytes(bool write) const { return write ? sink_ : zeroes_; }

 private:
  NullMemory();

  uint8_t* zeroes_ = nullptr;
  uint8_t* sink_ = nullptr;
};

}  // namespace weft::sim

#endif  // SIM_MEMORY_NULL_MEMORY_H_
