#include "mpi_hybrid/io/access.h"

#include <errno.h>

#include <mutex>
#include <new>
#include <optional>
#include <string>

#include "mpi_hybrid/io/io_error.h"
#include "mpi_hybrid/io/transfer.h"

namespace weft::mpi::io {
namespace {

// A lock of a range of the file for as long as it is there; of nothing while the file is not in atomic mode.
class AtomicRange {
 public:
  AtomicRange(File& file, const FileRange& range) : file_(file), range_(range) {}
  int Take(bool exclusive) {
    file_.locked_mutex.lock();
    held_ = true;
    return file_.raw->Lock(range_.offset, range_.bytes, exclusive);
  }
  ~AtomicRange() {
    if (!held_) return;
    (void)file_.raw->Unlock(range_.offset, range_.bytes);
    file_.locked_mutex.unlock();
  }

 private:
  File& file_;
  const FileRange range_;
  bool held_ = false;
};

}  // namespace

Error Access::Make(File& file, Direction direction, int64_t offset, const void* buffer, MPI_Count count, const Datatype& type,
                   Access* access) {
  const bool writes = direction == Direction::kWrite;
  if (writes && !file.may_write()) return Error(MPI_ERR_READ_ONLY, file.name + " was opened with MPI_MODE_RDONLY: it cannot be written");
  if (!writes && !file.may_read()) return Error(MPI_ERR_ACCESS, file.name + " was opened with MPI_MODE_WRONLY: it cannot be read");
  const View& view = *file.view;
  MPI_Count bytes = 0;
  WEFT_MPI_TRY(view.representation().FileBytes(count, type, &bytes));
  if (bytes % view.etype_bytes() != 0) {
    return Error(MPI_ERR_IO, file.name + ": the " + std::to_string(bytes) + " bytes to transfer are not a multiple of the view's etype, " +
                                 std::to_string(view.etype_bytes()) + " bytes");
  }
  int64_t position, end;
  if (__builtin_mul_overflow(offset, view.etype_bytes(), &position) || __builtin_add_overflow(position, bytes, &end) ||
      (end > view.capacity() && bytes > 0 && !view.empty())) {
    return Error(MPI_ERR_ARG, file.name + ": offset " + std::to_string(offset) + " is beyond the end of the largest file");
  }
  if (view.empty() && bytes > 0 && writes) {
    return Error(MPI_ERR_IO, file.name + ": the view has no data, so there is no place for the " + std::to_string(bytes) + " bytes to write");
  }
  access->file_ = Ref<File>(&file);
  access->view_ = file.view;
  access->type_ = Ref<const Datatype>(&type);
  access->direction_ = direction;
  access->hints_ = file.hints;
  access->atomic_ = file.atomic;
  access->buffer_ = const_cast<void*>(buffer);
  access->count_ = count;
  access->position_ = position;
  access->bytes_ = view.empty() ? 0 : bytes;
  access->byte_ = Datatype::Find(MPI_BYTE);
  return {};
}

Error Access::Failure(int error) const {
  return FileError(error, file_->name, std::string(writes() ? "write" : "read") + " " + std::to_string(bytes_) + " bytes");
}

Error Access::BeginMemory() {
  if (!is_converted() || bytes_ == 0) return {};
  converted_.reset(new (std::nothrow) uint8_t[static_cast<size_t>(bytes_)]);
  if (!converted_) return Failure(ENOMEM);
  return writes() ? view_->representation().ToFile(buffer_, count_, *type_, converted_.get()) : Error();
}

TypeCursor Access::memory() const {
  return converted_ ? TypeCursor(converted_.get(), bytes_, *byte_) : TypeCursor(buffer_, count_, *type_);
}

Error Access::EndMemory(int64_t moved, MPI_Count* data) {
  *data = moved;
  if (!converted_) return {};
  Error error;
  if (!writes()) {
    error = view_->representation().FromFile(converted_.get(), moved, buffer_, count_, *type_, data);
  } else if (moved == bytes_) {
    *data = count_ * type_->size;
  }
  converted_.reset();
  return error;
}

Error Access::RunInMemory(int64_t* moved) {
  if (bytes_ == 0) return {};
  RawFile& raw = *file_->raw;
  RangeCursor ranges(*view_, position_, bytes_);
  TypeCursor from = memory();
  std::optional<AtomicRange> held;
  if (atomic_) {
    const int64_t first = view_->OffsetOf(position_), last = view_->OffsetOf(position_ + bytes_ - 1);
    held.emplace(*file_, FileRange{first, last + 1 - first});
    if (const int error = held->Take(writes()); error != 0) return FileError(error, file_->name, "lock the range to access");
  }
  Moved result;
  if (!writes()) {
    Sieving sieving = {Sieving::When::kWhereItPays, hints_.ind_rd_buffer_size};
    if (hints_.ds_read == Hints::Choice::kEnable) sieving.when = Sieving::When::kAlways;
    if (hints_.ds_read == Hints::Choice::kDisable) sieving.when = Sieving::When::kNever;
    result = ReadRanges(raw, ranges, from, sieving);
  } else if (hints_.ds_write == Hints::Choice::kEnable && file_->may_read() && !atomic_) {
    const std::lock_guard alone(file_->locked_mutex);
    result = WriteRangesLocked(raw, ranges, from, hints_.ind_wr_buffer_size);
  } else {
    result = WriteRanges(raw, ranges, from);
  }
  *moved = result.bytes;
  return result.error == 0 ? Error() : Failure(result.error);
}

Error Access::Run(MPI_Count* data) {
  *data = 0;
  WEFT_MPI_TRY(BeginMemory());
  int64_t moved = 0;
  Error error = RunInMemory(&moved);
  Error ended = EndMemory(moved, data);
  return error.ok() ? ended : error;
}

}  // namespace weft::mpi::io
