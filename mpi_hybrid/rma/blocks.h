#ifndef MPI_HYBRID_RMA_BLOCKS_H_
#define MPI_HYBRID_RMA_BLOCKS_H_

#include <span>

#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/rma/target_window.h"
#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {

// Walks over target memory and describes it as the blocks of messages.
class BlockSource {
 public:
  // `offset`: of the type's origin. `element`: the elements of the data; a block never splits one.
  BlockSource(uint64_t offset, MPI_Aint count, const Datatype& type, const ElementType& element, MPI_Aint bytes);

  // The content of one message: at most kMaxBlocks blocks, and the number of bytes of data in them.
  struct Part {
    std::span<const Block> blocks;
    size_t bytes = 0;
  };
  bool done() const { return cursor_.position() >= bytes_; }
  Part Next();

 private:
  bool Append(uint64_t offset, size_t bytes);

  TypeCursor cursor_;
  const ElementType element_;
  const MPI_Aint bytes_;
  size_t room_;
  size_t count_ = 0;
  Block blocks_[kMaxBlocks];
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_BLOCKS_H_
