#ifndef MPI_HYBRID_DATATYPE_LAYOUT_H_
#define MPI_HYBRID_DATATYPE_LAYOUT_H_

#include <mpi.h>

#include <span>
#include <vector>

#include "mpi_hybrid/datatype/datatype.h"

// Builds layouts and signatures, which are trees in preorder (datatype.h).
namespace weft::mpi {

// Appends runs in the order of the type map. Adjacent blocks, and blocks that continue at the same distance, become one
// run.
class LayoutBuilder {
 public:
  // Appends the layout `runs`, displaced by `displacement` bytes.
  void Append(std::span<const Run> runs, MPI_Aint displacement);
  std::vector<Run> Take();

 private:
  static constexpr size_t kNone = ~size_t{0};
  void AppendLeaf(const Run& run);
  void Close();

  std::vector<Run> runs_;
  bool open_ = false;      // the last run is a leaf of the top level, and the next block may extend it
  size_t closed_ = kNone;  // the leaf of the top level before that, if no loop is between them
};

// Repeats `runs` `count` times, `stride` bytes apart.
std::vector<Run> Repeat(std::vector<Run> runs, MPI_Aint count, MPI_Aint stride);
// Bytes of data, and number of blocks, of one pass through `runs`.
MPI_Aint DataBytes(std::span<const Run> runs);
MPI_Aint CountPieces(std::span<const Run> runs);

// The same for signatures.
class SignatureBuilder {
 public:
  void Append(std::span<const SignaturePart> parts);
  std::vector<SignaturePart> Take() { return std::move(parts_); }

 private:
  std::vector<SignaturePart> parts_;
  size_t last_ = 0;  // index of the last part of the top level
};
std::vector<SignaturePart> Repeat(std::vector<SignaturePart> signature, MPI_Aint count);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DATATYPE_LAYOUT_H_
