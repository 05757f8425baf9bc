#ifndef MPI_HYBRID_RMA_MAPPED_MEMORY_H_
#define MPI_HYBRID_RMA_MAPPED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "mpi_hybrid/rma/target_window.h"
#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {

// Which memory of a window is mapped, asked of the kernel while one call carries out many messages: the program may have unmapped it, and a store into
// it would end the process. Each page is looked at once, if the messages lie close together. Another thread may unmap it afterwards.
class MappedMemory {
 public:
  // Of a window that is not dynamic.
  explicit MappedMemory(const TargetWindow& window) : base_(reinterpret_cast<uintptr_t>(window.base)) {}

  // All bytes of these blocks, which lie within the window, of whole elements of `type`.
  bool Has(std::span<const Block> blocks, const ElementType& type);
  // Pages that the kernel was asked for so far.
  size_t looks() const { return looks_; }

 private:
  // Addresses from first to behind the last.
  struct Range {
    uintptr_t first = 0, end = 0;
    bool Contains(const Range& other) const { return first <= other.first && other.end <= end; }
  };
  bool HasWhole(const Range& range);
  bool HasPieces(std::span<const Block> blocks, const ElementType& type);
  bool Look(std::span<const Range> ranges);

  const uintptr_t base_;
  Range known_;  // is mapped
  size_t looks_ = 0;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_MAPPED_MEMORY_H_
