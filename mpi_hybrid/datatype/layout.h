#ifndef MPI_HYBRID_DATATYPE_LAYOUT_H_
#define MPI_HYBRID_DATATYPE_LAYOUT_H_

#include <mpi.h>

#include <span>
#include <vector>

#include "mpi_hybrid/datatype/datatype.h"

// Layouts and signatures as trees in preorder (datatype.h): how they are put together and folded.
namespace weft::mpi {

// Puts runs behind each other in the order of the type map; neighbours that touch or go on at the same distance become one run.
class LayoutBuilder {
 public:
  // The layout `runs`, displaced.
  void Append(std::span<const Run> runs, MPI_Aint displacement);
  std::vector<Run> Take();

 private:
  static constexpr size_t kNone = ~size_t{0};
  void AppendLeaf(const Run& run);
  void Close();

  std::vector<Run> runs_;
  bool open_ = false;      // the last run is a leaf of the uppermost level which the next block may lengthen
  size_t closed_ = kNone;  // the leaf of the uppermost level before that, if there is no loop between
};

// `runs`, `count` times, `stride` bytes apart.
std::vector<Run> Repeat(std::vector<Run> runs, MPI_Aint count, MPI_Aint stride);
// Bytes of data and blocks of one time through.
MPI_Aint DataBytes(std::span<const Run> runs);
MPI_Aint CountPieces(std::span<const Run> runs);

// The same for signatures.
class SignatureBuilder {
 public:
  void Append(std::span<const SignaturePart> parts);
  std::vector<SignaturePart> Take() { return std::move(parts_); }

 private:
  std::vector<SignaturePart> parts_;
  size_t last_ = 0;  // the last part of the uppermost level
};
std::vector<SignaturePart> Repeat(std::vector<SignaturePart> signature, MPI_Aint count);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DATATYPE_LAYOUT_H_
