#ifndef MPI_HYBRID_DATATYPE_DATATYPE_H_
#define MPI_HYBRID_DATATYPE_DATATYPE_H_

#include <mpi.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mpi_hybrid/core/attributes.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/ref.h"

namespace weft::mpi {

// The results of MPI_Type_get_envelope and MPI_Type_get_contents. The arrays are contiguous, in the standard's order
// (MPI 4.0 section 5.1.13).
struct TypeContents {
  int combiner = MPI_COMBINER_NAMED;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Count> counts;
  std::vector<Ref<const class Datatype>> types;
};

// The layout of a type is a tree of runs, stored in preorder; most types have one run or a few. There are no empty
// runs.
// A leaf (`body` == 0): `count` blocks of `length` bytes, `stride` bytes apart; the first is at `offset` from the
// enclosing origin.
// A loop (`body` > 0): repeats the next `body` runs `count` times. Their origin is at `offset` and moves by `stride`
// bytes each time; `length` is the number of bytes of data of one repetition.
struct Run {
  MPI_Aint offset = 0;
  MPI_Aint length = 0;
  MPI_Aint count = 1;
  MPI_Aint stride = 0;
  uint32_t body = 0;
};
constexpr int kMaxLoops = 8;  // loops around a leaf

// The signature: basic types in the order of the type map, run-length encoded. It suffices to check that two signatures
// match, to convert (external32) and to reduce. It is a tree in preorder, like the layout: `body` > 0 repeats the next
// `body` parts `count` times. A type made of one basic type has one part.
struct SignaturePart {
  MPI_Datatype basic = MPI_DATATYPE_NULL;  // a predefined type; a pair type such as MPI_FLOAT_INT counts as one
  MPI_Aint count = 0;
  uint32_t body = 0;
};

// A datatype: predefined (never deleted) or derived. Immutable after construction, except for name, attributes and
// `committed`.
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
  // made by a large-count constructor: MPI_Type_get_envelope and MPI_Type_get_contents must refuse it
  bool big = false;
  int alignment = 1;        // of the strictest basic type; structures of different types are padded to it
  // number of blocks of the layout: an element consists of at most so many contiguous pieces of memory
  MPI_Aint pieces = 0;
  std::vector<Run> layout;  // in the order of the type map; blocks that are adjacent only in memory are not merged
  std::vector<SignaturePart> signature;
  TypeContents contents;
  std::string name;
  Attributes attributes;
  mutable int users = 0;  // number of the program's references to `handle`

  // A predefined or derived type. Null: `handle` is neither, was freed, or is MPI_LB or MPI_UB.
  static Datatype* Find(MPI_Datatype handle) {
    Datatype* const type = found_[handle & kMostFound].load(std::memory_order_acquire);
    return type != nullptr && type->handle == handle ? type : FindAny(handle);
  }
  // Also finds MPI_LB and MPI_UB.
  static Datatype* FindWithMarkers(MPI_Datatype handle);

  // Makes the handle of a derived type, or adds a reference of the program to it.
  static MPI_Datatype Give(Datatype& type);
  // Releases one reference of the program. After the last one the handle is invalid, and the type is deleted when no
  // operation needs it any more. Not for predefined types.
  static void TakeBack(Datatype& type);

  // The one predefined type of all of its data. MPI_DATATYPE_NULL: it has several, or no data.
  MPI_Datatype OnlyBasic() const { return signature.size() == 1 ? signature[0].basic : MPI_DATATYPE_NULL; }

  Datatype() = default;
  ~Datatype();

 private:
  static Datatype* FindAny(MPI_Datatype handle);

  // Predefined types that the program has used, by the low bits of their handles. Any thread may use it.
  static constexpr MPI_Datatype kMostFound = 0xff;
  static inline std::atomic<Datatype*> found_[kMostFound + 1] = {};
};

// Walks over the memory of `count` elements of `type` at `buffer`, in the order of the type map, in contiguous pieces.
// Cheap to make for dense types. The memory and the type must outlive it.
class TypeCursor {
 public:
  TypeCursor(const void* buffer, MPI_Aint count, const Datatype& type);

  // Bytes of data before the cursor (position) and behind it (remaining).
  MPI_Aint position() const { return position_; }
  MPI_Aint remaining() const { return total_ - position_; }
  // Moves to `position` bytes of data from the start. O(length of the layout); O(1) within one run.
  void Seek(MPI_Aint position);
  // Stores the next pieces, of at most `limit` bytes in total, in `pieces`, and returns their number. Adjacent pieces
  // are merged. Moves the cursor behind them.
  size_t Next(std::span<iovec> pieces, size_t limit);
  // Returns the next blocks that have one length and one distance, and moves the cursor behind them: whole blocks, at
  // least two, of at most `limit` bytes in total. Count 0: there are none, and the cursor stays where it is.
  struct Blocks {
    uintptr_t first = 0;
    size_t count = 0, length = 0;
    MPI_Aint stride = 0;
  };
  Blocks NextBlocks(size_t limit);

 private:
  friend class CursorCopier;
  struct Level {
    MPI_Aint iteration;
    uintptr_t origin;
    uint32_t node;  // the loop; its body ends before `end`
    uint32_t end;
  };

  void Enter();           // sets the leaf, from node_ and origin_
  void NextLeaf();
  void Advance(MPI_Aint bytes);  // inside the leaf
  void SkipBlocks(MPI_Aint blocks);
  void SkipTimes(int depth, MPI_Aint times);  // of the loop levels_[depth - 1], from the beginning of one
  void Climb();           // to the leaf behind node_
  void Rewind();

  const Datatype* type_;
  uintptr_t buffer_;
  MPI_Aint count_, total_, position_ = 0;
  // The leaf: blocks_ blocks of length_ bytes from leaf_ on. If all of the memory is one run, there is just one.
  uintptr_t leaf_;
  MPI_Aint length_, blocks_, stride_;
  MPI_Aint block_ = 0, in_block_ = 0;
  // The place of the leaf in the tree. Unused if flat_.
  bool flat_;
  int depth_ = 0;
  uint32_t node_ = 0;
  uintptr_t origin_ = 0;
  MPI_Aint element_ = 0;
  Level levels_[kMaxLoops];
};

// Pack copies the next out.size() bytes of data at the cursor into `out`. Unpack copies `in` to the cursor's memory. At
// most remaining() bytes.
void Pack(TypeCursor& from, std::span<uint8_t> out);
void Unpack(TypeCursor& to, std::span<const uint8_t> in);

// Copies like a message to oneself, at most `to_count` elements. MPI_ERR_TRUNCATE: there is more data than space.
Error CopyTyped(const void* from, MPI_Aint from_count, const Datatype& from_type, void* to, MPI_Aint to_count,
                const Datatype& to_type);

// The range of memory that `count` elements touch, relative to the buffer's address: [low, high).
void MemorySpan(MPI_Aint count, const Datatype& type, MPI_Aint* low, MPI_Aint* high);

// Constructors (MPI 4.0 section 5.1). The result is not committed and has no handle. Arguments are valid: api/ has
// checked counts and handles. Null: size, bounds or extent do not fit into an MPI_Aint.
Ref<Datatype> MakeContiguous(MPI_Aint count, const Datatype& old);
Ref<Datatype> MakeVector(MPI_Aint count, MPI_Aint block_length, MPI_Aint stride_bytes, const Datatype& old);
Ref<Datatype> MakeStruct(std::span<const MPI_Aint> block_lengths, std::span<const MPI_Aint> displacements,
                         std::span<const Ref<const Datatype>> types);
Ref<Datatype> MakeResized(const Datatype& old, MPI_Aint lb, MPI_Aint extent);
Ref<Datatype> MakeDuplicate(const Datatype& old);
// The other constructors are in constructors.h, with contents for MPI_Type_get_contents.

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DATATYPE_DATATYPE_H_
