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

// What MPI_Type_get_envelope and MPI_Type_get_contents return. Contiguous arrays in the standard's order (MPI 4.0
// section 5.1.13).
struct TypeContents {
  int combiner = MPI_COMBINER_NAMED;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Count> counts;
  std::vector<Ref<const class Datatype>> types;
};

// A type's layout is a tree of runs, written down in preorder; most types have one run or a few. Empty runs do not occur.
// A leaf (`body` == 0): `count` blocks of `length` bytes, `stride` bytes apart, the first at `offset` from the enclosing origin.
// A loop (`body` > 0): the `body` runs behind it, `count` times, their origin at `offset` and each time `stride` bytes further;
// `length` is the bytes of data of one time.
struct Run {
  MPI_Aint offset = 0;
  MPI_Aint length = 0;
  MPI_Aint count = 1;
  MPI_Aint stride = 0;
  uint32_t body = 0;
};
constexpr int kMaxLoops = 8;  // loops around a leaf

// Basic types of the signature, run length encoded, in the order of the type map; enough to check that two signatures match, to
// convert (external32) and to reduce. A tree in preorder as the layout is: with `body` > 0 the `body` parts behind it, `count`
// times. A type made of one basic type has one part.
struct SignaturePart {
  MPI_Datatype basic = MPI_DATATYPE_NULL;  // a predefined type; MPI_FLOAT_INT and its kin count as one
  MPI_Aint count = 0;
  uint32_t body = 0;
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
  bool big = false;  // made by a large-count constructor: MPI_Type_get_envelope and _contents must refuse
  int alignment = 1;        // of the strictest basic type; structures of different types are padded to it
  MPI_Aint pieces = 0;      // blocks of the layout: an element is at most so many contiguous pieces of memory
  std::vector<Run> layout;  // in the order of the type map; not merged across order
  std::vector<SignaturePart> signature;
  TypeContents contents;
  std::string name;
  Attributes attributes;
  mutable int users = 0;  // references of the program to `handle`

  // A predefined or made type; null when `handle` is neither, was freed, or is MPI_LB or MPI_UB.
  static Datatype* Find(MPI_Datatype handle) {
    Datatype* const type = found_[handle & kMostFound].load(std::memory_order_acquire);
    return type != nullptr && type->handle == handle ? type : FindAny(handle);
  }
  // MPI_LB and MPI_UB too.
  static Datatype* FindWithMarkers(MPI_Datatype handle);

  // Makes the handle of a derived type, or gives the program one more reference to it.
  static MPI_Datatype Give(Datatype& type);
  // Takes a reference of the program back: the handle is void when that was its last, the type goes when no operation needs it
  // any more. Not for predefined types.
  static void TakeBack(Datatype& type);

  // The one predefined type that all of its data has; MPI_DATATYPE_NULL when it has several or no data.
  MPI_Datatype OnlyBasic() const { return signature.size() == 1 ? signature[0].basic : MPI_DATATYPE_NULL; }

  Datatype() = default;
  ~Datatype();

 private:
  static Datatype* FindAny(MPI_Datatype handle);

  // Predefined types that the program has used, by the low bits of their handles. From any thread.
  static constexpr MPI_Datatype kMostFound = 0xff;
  static inline std::atomic<Datatype*> found_[kMostFound + 1] = {};
};

// Walks over the memory of `count` elements of `type` at `buffer`, in the order of the type map, in pieces that are contiguous.
// Cheap to make for dense types. The memory and the type must outlive it.
class TypeCursor {
 public:
  TypeCursor(const void* buffer, MPI_Aint count, const Datatype& type);

  // Bytes of data before and after the cursor.
  MPI_Aint position() const { return position_; }
  MPI_Aint remaining() const { return total_ - position_; }
  // Moves to `position` bytes of data from the start; O(length of the layout), inside of one run O(1).
  void Seek(MPI_Aint position);
  // The next pieces, of at most `limit` bytes together, into `pieces`; how many. Adjacent pieces are merged. Advances behind
  // them.
  size_t Next(std::span<iovec> pieces, size_t limit);
  // The next blocks of one length and one distance, whole ones, at least two, of at most `limit` bytes together; advances behind them. count 0: there
  // are none, which leaves the cursor where it is.
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
  // The leaf: blocks_ blocks of length_ bytes from leaf_ on. A cursor over memory that is one run altogether has just one.
  uintptr_t leaf_;
  MPI_Aint length_, blocks_, stride_;
  MPI_Aint block_ = 0, in_block_ = 0;
  // Where the leaf is in the tree. Unused if flat_.
  bool flat_;
  int depth_ = 0;
  uint32_t node_ = 0;
  uintptr_t origin_ = 0;
  MPI_Aint element_ = 0;
  Level levels_[kMaxLoops];
};

// Copies the data of the cursor's next out.size() bytes into `out` (at most remaining()), or from `in` to the cursor's memory.
void Pack(TypeCursor& from, std::span<uint8_t> out);
void Unpack(TypeCursor& to, std::span<const uint8_t> in);

// Copies as if by a message to oneself: at most `to_count` elements; MPI_ERR_TRUNCATE when there is more data than room.
Error CopyTyped(const void* from, MPI_Aint from_count, const Datatype& from_type, void* to, MPI_Aint to_count,
                const Datatype& to_type);

// Extent of the memory touched by `count` elements, from the buffer's address: [low, high).
void MemorySpan(MPI_Aint count, const Datatype& type, MPI_Aint* low, MPI_Aint* high);

// Constructors (MPI 4.0 section 5.1). The result is not committed and has no handle. Arguments are valid (api/ has checked counts
// and handles). Null when size, bounds or extent do not fit an MPI_Aint.
Ref<Datatype> MakeContiguous(MPI_Aint count, const Datatype& old);
Ref<Datatype> MakeVector(MPI_Aint count, MPI_Aint block_length, MPI_Aint stride_bytes, const Datatype& old);
Ref<Datatype> MakeStruct(std::span<const MPI_Aint> block_lengths, std::span<const MPI_Aint> displacements,
                         std::span<const Ref<const Datatype>> types);
Ref<Datatype> MakeResized(const Datatype& old, MPI_Aint lb, MPI_Aint extent);
Ref<Datatype> MakeDuplicate(const Datatype& old);
// ... and the rest in constructors.h, with contents for MPI_Type_get_contents.

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DATATYPE_DATATYPE_H_
