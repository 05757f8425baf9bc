#ifndef MPI_HYBRID_IO_VIEW_H_
#define MPI_HYBRID_IO_VIEW_H_

#include <mpi.h>

#include <cstdint>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/ref.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/io/representation.h"

namespace weft::mpi::io {

// A contiguous part of the file, in bytes from its beginning.
struct FileRange {
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t end() const { return offset + bytes; }
};

// The part of a file that a process sees (MPI 4.0 section 14.3): from `displacement` on, one filetype after the other.
// Its data is a stream of bytes in the file's representation. A place in the stream is a *position*, in bytes. The
// program counts in etypes, so its positions are multiples of etype_bytes(). Immutable; running operations keep a
// reference.
class View : public RefCounted<View> {
 public:
  static constexpr int64_t kMostBytes = int64_t{1} << 62;  // limit for offsets in the file and positions in the stream

  // The view of a newly opened file: the whole file, as bytes.
  static Ref<View> Initial();
  // MPI_ERR_ARG, MPI_ERR_TYPE: the types cannot form a view, or not one of a file that is written.
  static Error Make(int64_t displacement, const Datatype& etype, const Datatype& filetype, const Representation& representation,
                    bool for_writing, Ref<View>* made);

  const Datatype& etype() const { return *etype_; }        // as the program gave them
  const Datatype& filetype() const { return *filetype_; }
  int64_t displacement() const { return displacement_; }
  const Representation& representation() const { return *representation_; }

  int64_t etype_bytes() const { return etype_bytes_; }  // of data, in the file
  // Positions are below this; offsets in the file would overflow beyond it.
  int64_t capacity() const { return tiles_ * file_type_->size; }
  // A filetype without data makes no byte of the file visible.
  bool empty() const { return file_type_->size == 0; }
  // The average number of contiguous bytes of data.
  int64_t piece_bytes() const;

  // The offset in the file of the byte at `position`, which must be below capacity().
  int64_t OffsetOf(int64_t position) const;
  // The number of bytes of the stream before `offset` in the file.
  int64_t PositionBefore(int64_t offset) const;

 private:
  friend class RangeCursor;
  View() = default;

  int64_t displacement_ = 0;
  Ref<const Datatype> etype_, filetype_, file_type_;  // the last one: as it lies in the file
  const Representation* representation_ = nullptr;
  int64_t etype_bytes_ = 1;
  int64_t tiles_ = 0;
};

// Walks, in order, over the ranges of the file that contain `bytes` bytes of a view's stream from `position` on. The
// view must outlive it.
class RangeCursor {
 public:
  RangeCursor(const View& view, int64_t position, int64_t bytes);

  int64_t position() const { return cursor_.position(); }
  int64_t remaining() const { return end_ - cursor_.position(); }
  // Stores the next range, of at most `limit` bytes. Adjacent ranges are merged. False: the end.
  bool Next(FileRange* range, int64_t limit = INT64_MAX);

 private:
  TypeCursor cursor_;  // over the file, as if it were memory at address 0
  int64_t end_;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_VIEW_H_
