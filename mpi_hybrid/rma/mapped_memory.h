#ifndef MPI_HYBRID_RMA_MAPPED_MEMORY_H_
#define MPI_HYBRID_RMA_MAPPED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "mpi_hybrid/rma/target_window.h"
#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {

// Which memory of a window is mapped, asked of the kernel while one call carries out many messages: the program may have unmapped it, and a store into
// it would end the process. One system call where all of the window is there. Another thread may unmap it afterwards.
class MappedMemory {
 public:
  // Of a window that is not dynamic.
  explicit MappedMemory(const TargetWindow& window) : window_(window) {}

  // All bytes of these blocks, which lie within the window, of whole elements of `type`.
  bool Has(std::span<const Block> blocks, const ElementType& type) { return HasWindow() || HasPieces(blocks, type); }
  // System calls so far.
  size_t looks() const { return looks_; }

 private:
  enum class Whole : uint8_t { kUnknown, kMapped, kHasHoles };
  bool HasWindow();
  bool HasPieces(std::span<const Block> blocks, const ElementType& type);
  bool Look(uintptr_t first, uint64_t bytes);

  const TargetWindow& window_;
  Whole whole_ = Whole::kUnknown;
  size_t looks_ = 0;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_MAPPED_MEMORY_H_
