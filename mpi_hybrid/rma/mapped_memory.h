#ifndef MPI_HYBRID_RMA_MAPPED_MEMORY_H_
#define MPI_HYBRID_RMA_MAPPED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "mpi_hybrid/rma/target_window.h"
#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {

// Checks with the kernel which memory of a window is mapped, while one call carries out many messages. The program may
// have unmapped some of it, and a store there would end the process. It takes one system call if the whole window is
// mapped. Another thread may still unmap memory after the check.
class MappedMemory {
 public:
  // `window` is not dynamic.
  explicit MappedMemory(const TargetWindow& window) : window_(window) {}

  // Whether all bytes of these blocks, which are within the window and consist of whole elements of `type`, are mapped.
  bool Has(std::span<const Block> blocks, const ElementType& type) { return HasWindow() || HasPieces(blocks, type); }
  // Number of system calls so far.
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
