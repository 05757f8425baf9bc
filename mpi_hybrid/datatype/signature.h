#ifndef MPI_HYBRID_DATATYPE_SIGNATURE_H_
#define MPI_HYBRID_DATATYPE_SIGNATURE_H_

#include <mpi.h>

#include <vector>

#include "mpi_hybrid/datatype/datatype.h"

// The sequence of basic elements of a type (MPI 4.0 section 5.1.1).
namespace weft::mpi {

// The number of basic elements in one element of `type`. A pair such as MPI_FLOAT_INT has two.
MPI_Count CountBasics(const Datatype& type);
// The number of basic elements in the first `bytes` bytes of data of elements of `type`. MPI_UNDEFINED: the bytes end
// inside a basic element.
MPI_Count BasicsIn(MPI_Count bytes, const Datatype& type);
// The number of bytes of data in the first `basics` basic elements.
MPI_Count BytesOfBasics(MPI_Count basics, const Datatype& type);

// Whether the shorter of the two sequences of basic elements is a prefix of the longer one, which is the condition for
// a message (MPI 4.0 section 3.3.1). Two basic types match if they have the same kind and size; MPI_PACKED matches all
// types. The cost is proportional to the number of runs of equal types.
bool SignaturesMatch(const Datatype& a, MPI_Count a_count, const Datatype& b, MPI_Count b_count);

// Walks over the basic elements of `count` elements of `type`, in runs of equal ones.
class SignatureCursor {
 public:
  SignatureCursor(const Datatype& type, MPI_Count count);

  bool done() const { return repeats_ == 0; }
  MPI_Datatype basic() const { return part_->basic; }
  MPI_Count left() const { return left_; }  // in the run
  void Advance(MPI_Count basics);           // at most left()

 private:
  struct Loop {
    const SignaturePart* part;
    MPI_Aint left;
  };
  void Enter();

  const Datatype* type_;
  MPI_Count repeats_;  // of the whole type, including the current one
  const SignaturePart* part_ = nullptr;
  MPI_Count left_ = 0;
  std::vector<Loop> loops_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DATATYPE_SIGNATURE_H_
