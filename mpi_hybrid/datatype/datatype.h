#ifndef MPI_HYBRID_DATATYPE_DATATYPE_H_
#define MPI_HYBRID_DATATYPE_DATATYPE_H_

#include <mpi.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mpi_hybrid/core/attributes.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/ref.h"

namespace weft::mpi {

// What MPI_Type_get_envelope and MPI_Type_get_contents return. Contiguous arrays in the standard's order (MPI 4.0 section 5.1.13).
struct TypeContents {
  int combiner = MPI_COMBINER_NAMED;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Count> counts;
  std::vector<Ref<const class Datatype>> types;
};

// A run of `count` blocks of `length` bytes, `stride` bytes apart, the first at `offset` from the element's origin. A type's layout is
// a short list of runs; indexed types with equal distances fold into one.
struct Run {
  MPI_Aint offset = 0;
  MPI_Aint length = 0;
  MPI_Aint count = 1;
  MPI_Aint stride = 0;
};

// Basic types of the signature, run length encoded, in the order of the type map; enough to check that two signatures match, to
// convert (external32) and to reduce.
struct SignaturePart {
  MPI_Datatype basic = MPI_DATATYPE_NULL;  // a predefined type that has no parts of its own
  MPI_Aint count = 0;
};

// A datatype: predefined (never deleted) or derived. Immutable after construction but for name, attributes and `committed`.
class Datatype : public RefCounted<Datatype> {
 public:
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  bool builtin = false;
  bool committed = false;
  MPI_Aint size = 0;  // bytes of data
  MPI_Aint lb = 0, extent = 0;
  MPI_Aint true_lb = 0, true_extent = 0;
  // One block of `size` bytes at offset 0 and extent == size: `count` elements are one block of count * size bytes.
  bool dense = false;
  bool big = false;  // some number of its contents does not fit an int (MPI_Type_get_contents must refuse)
  std::vector<Run> layout;  // in the order of the type map; not merged across order
  std::vector<SignaturePart> signature;
  TypeContents contents;
  std::string name;
  Attributes attributes;

  // A predefined or made type; null when `handle` is neither.
  static Datatype* Find(MPI_Datatype handle);
};

// Walks over the memory of `count` elements of `type` at `buffer`, in the order of the type map, in pieces that are contiguous.
// Cheap to make for dense types. The memory and the type must outlive it.
class TypeCursor {
 public:
  TypeCursor(const void* buffer, MPI_Aint count, const Datatype& type);

  // Bytes of data before and after the cursor.
  MPI_Aint position() const;
  MPI_Aint remaining() const;
  // Moves to `position` bytes of data from the start; O(length of the layout).
  void Seek(MPI_Aint position);
  // The next pieces, of at most `limit` bytes together, into `pieces`; how many. Adjacent pieces are merged. Advances behind them.
  size_t Next(std::span<iovec> pieces, size_t limit);

 private:
  const uint8_t* buffer_;
  const Datatype* type_;
  MPI_Aint count_;
  MPI_Aint element_ = 0;    // of count_
  size_t run_ = 0;          // of the layout
  MPI_Aint block_ = 0;      // of the run
  MPI_Aint in_block_ = 0;   // bytes
  MPI_Aint position_ = 0;
};

// Copies the data of the cursor's next out.size() bytes into `out` (at most remaining()), or from `in` to the cursor's memory.
void Pack(TypeCursor& from, std::span<uint8_t> out);
void Unpack(TypeCursor& to, std::span<const uint8_t> in);

// Copies as if by a message to oneself: at most `to_count` elements; MPI_ERR_TRUNCATE when there is more data than room.
Error CopyTyped(const void* from, MPI_Aint from_count, const Datatype& from_type, void* to, MPI_Aint to_count,
                const Datatype& to_type);

// Extent of the memory touched by `count` elements, from the buffer's address: [low, high).
void MemorySpan(MPI_Aint count, const Datatype& type, MPI_Aint* low, MPI_Aint* high);

// Constructors (MPI 4.0 section 5.1). The result is not committed. Arguments are valid (api/ has checked counts and handles).
Ref<Datatype> MakeContiguous(MPI_Aint count, const Datatype& old);
Ref<Datatype> MakeVector(MPI_Aint count, MPI_Aint block_length, MPI_Aint stride_bytes, const Datatype& old);
Ref<Datatype> MakeStruct(std::span<const MPI_Aint> block_lengths, std::span<const MPI_Aint> displacements,
                         std::span<const Ref<const Datatype>> types);
Ref<Datatype> MakeResized(const Datatype& old, MPI_Aint lb, MPI_Aint extent);
Ref<Datatype> MakeDuplicate(const Datatype& old);
// ... and the rest in constructors.h, with contents for MPI_Type_get_contents.

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DATATYPE_DATATYPE_H_
