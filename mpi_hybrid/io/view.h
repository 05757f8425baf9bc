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

// What a process sees of a file (MPI 4.0 section 14.3): from `displacement` on, one filetype after the other. Its data is a stream of
// bytes in the file's representation; a place in it is a *position*, in bytes, and a multiple of etype_bytes() for the program, which
// counts in etypes. Immutable; operations under way keep theirs.
class View : public RefCounted<View> {
 public:
  static constexpr int64_t kMostBytes = int64_t{1} << 62;  // of file and stream

  // Whole file, bytes: the view of a file that was just opened.
  static Ref<View> Initial();
  // MPI_ERR_ARG, MPI_ERR_TYPE: the types make no view, or not for a file that is written.
  static Error Make(int64_t displacement, const Datatype& etype, const Datatype& filetype, const Representation& representation,
                    bool for_writing, Ref<View>* made);

  const Datatype& etype() const { return *etype_; }        // as the program gave them
  const Datatype& filetype() const { return *filetype_; }
  int64_t displacement() const { return displacement_; }
  const Representation& representation() const { return *representation_; }

  int64_t etype_bytes() const { return etype_bytes_; }  // of data, in the file
  // Positions are below this: beyond, offsets in the file would not fit.
  int64_t capacity() const { return tiles_ * file_type_->size; }
  // A filetype without data shows nothing of the file.
  bool empty() const { return file_type_->size == 0; }
  // Average bytes of data that lie together.
  int64_t piece_bytes() const;

  // The offset in the file of the byte at `position`, which is below capacity().
  int64_t OffsetOf(int64_t position) const;
  // How many bytes of the stream lie before `offset` of the file.
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

// Walks over the ranges of the file that `bytes` bytes of a view's stream from `position` on are in, in order. The view must outlive
// it.
class RangeCursor {
 public:
  RangeCursor(const View& view, int64_t position, int64_t bytes);

  int64_t position() const { return cursor_.position(); }
  int64_t remaining() const { return end_ - cursor_.position(); }
  // The next range, of at most `limit` bytes; neighbours that touch are one. False at the end.
  bool Next(FileRange* range, int64_t limit = INT64_MAX);

 private:
  TypeCursor cursor_;  // over the file as if it were memory at address 0
  int64_t end_;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_VIEW_H_
