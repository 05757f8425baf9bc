#include "mpi_hybrid/io/view.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/check.h"
#include "mpi_hybrid/io/file_type.h"

namespace weft::mpi::io {
namespace {

const void* AsAddress(int64_t offset) { return reinterpret_cast<const void*>(static_cast<uintptr_t>(offset)); }
int64_t AsOffset(const void* address) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(address)); }

// Bytes of data of `runs`, once through and in ascending order, at displacements below `limit`.
int64_t DataBelow(std::span<const Run> runs, int64_t limit) {
  int64_t below = 0;
  for (size_t i = 0; i < runs.size(); i += 1 + runs[i].body) {
    const Run& run = runs[i];
    const int64_t into = limit - run.offset;
    if (into <= 0) break;
    // The times that begin before `limit`; all but the last of them are below it altogether, unless times overlap, which they do not
    // in what is written and what matters.
    const int64_t times = run.count == 1 || run.stride <= 0 ? run.count : std::min<int64_t>(run.count, (into + run.stride - 1) / run.stride);
    const int64_t last = into - (times - 1) * run.stride;
    below += (times - 1) * run.length;
    below += run.body == 0 ? std::min<int64_t>(run.length, last) : DataBelow(runs.subspan(i + 1, run.body), last);
  }
  return below;
}

// MPI_ERR_IO, as of ROMIO: MPI 4.0 section 14.3 names no class.
Error CheckOrder(const Datatype& type, const char* name, bool for_writing) {
  const LayoutOrder order = OrderOf(type);
  if (!order.monotonic) {
    return Error(MPI_ERR_IO, std::string(name) + "'s displacements are negative or not ascending, which a view does not allow");
  }
  if (for_writing && !order.disjoint) {
    return Error(MPI_ERR_IO, std::string(name) + " contains the same bytes twice, which is not allowed in a file that is written");
  }
  return {};
}

}  // namespace

Ref<View> View::Initial() {
  Ref<View> view;
  const Datatype& byte = *Datatype::Find(MPI_BYTE);
  const Error error = Make(0, byte, byte, *FindRepresentation("native"), true, &view);
  WEFT_CHECK(error.ok());
  return view;
}

Error View::Make(int64_t displacement, const Datatype& etype, const Datatype& filetype, const Representation& representation, bool for_writing,
                 Ref<View>* made) {
  if (displacement < 0) return Error(MPI_ERR_ARG, "disp " + std::to_string(displacement) + " is negative");
  if (displacement >= kMostBytes) return Error(MPI_ERR_ARG, "disp " + std::to_string(displacement) + " is beyond any file");
  if (etype.size == 0) return Error(MPI_ERR_ARG, "etype has no data, so that offsets cannot be counted in it");
  if (filetype.size % etype.size != 0) {
    return Error(MPI_ERR_ARG, "filetype has " + std::to_string(filetype.size) + " bytes of data, which is not a multiple of etype's " +
                                  std::to_string(etype.size));
  }
  WEFT_MPI_TRY(CheckOrder(etype, "etype", for_writing));
  WEFT_MPI_TRY(CheckOrder(filetype, "filetype", for_writing));
  Ref<View> view(new View);
  Ref<const Datatype> file_etype;
  WEFT_MPI_TRY(representation.FileType(etype, &file_etype));
  WEFT_MPI_TRY(representation.FileType(filetype, &view->file_type_));
  view->displacement_ = displacement;
  view->etype_ = Ref<const Datatype>(&etype);
  view->filetype_ = Ref<const Datatype>(&filetype);
  view->representation_ = &representation;
  view->etype_bytes_ = std::max<int64_t>(file_etype->size, 1);
  const Datatype& type = *view->file_type_;
  const int64_t reach = std::max<int64_t>({type.size, type.extent, type.true_lb + type.true_extent, 1});
  view->tiles_ = (kMostBytes - displacement) / reach;
  *made = view;
  return {};
}

int64_t View::piece_bytes() const { return file_type_->dense ? kMostBytes : file_type_->size / std::max<int64_t>(file_type_->pieces, 1); }

int64_t View::OffsetOf(int64_t position) const {
  RangeCursor cursor(*this, position, 1);
  FileRange range;
  WEFT_CHECK(cursor.Next(&range));
  return range.offset;
}

int64_t View::PositionBefore(int64_t offset) const {
  const Datatype& type = *file_type_;
  const int64_t into = offset - displacement_;
  if (into <= 0 || type.size == 0) return 0;
  if (type.dense) return std::min(into, capacity());
  const int64_t first = type.true_lb;
  if (into <= first) return 0;
  // The tiles that begin before it.
  const int64_t tiles = type.extent > 0 ? std::min((into - first + type.extent - 1) / type.extent, tiles_) : 1;
  return (tiles - 1) * type.size + DataBelow(type.layout, into - (tiles - 1) * type.extent);
}

RangeCursor::RangeCursor(const View& view, int64_t position, int64_t bytes)
    : cursor_(AsAddress(view.displacement_), view.tiles_, *view.file_type_), end_(position + bytes) {
  cursor_.Seek(position);
}

bool RangeCursor::Next(FileRange* range, int64_t limit) {
  iovec piece;
  if (remaining() == 0) return false;
  const size_t pieces = cursor_.Next({&piece, 1}, static_cast<size_t>(std::min(limit, remaining())));
  WEFT_CHECK(pieces == 1);
  *range = {AsOffset(piece.iov_base), static_cast<int64_t>(piece.iov_len)};
  return true;
}

}  // namespace weft::mpi::io
