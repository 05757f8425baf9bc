#ifndef MPI_HYBRID_IO_ACCESS_H_
#define MPI_HYBRID_IO_ACCESS_H_

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/io/file.h"

namespace weft::mpi::io {

// One data access: an amount of data in the program's memory, and its position in the stream of the view. Make needs
// the library's lock, Run does not. The access holds references to file, view and type, so it must also be destroyed
// with the lock held.
class Access {
 public:
  enum class Direction : uint8_t { kRead, kWrite };

  // `offset` is in etypes and not negative. An error: the amount is not a multiple of the etype, the file's access mode
  // does not allow the access, or the range is beyond the view.
  static Error Make(File& file, Direction direction, int64_t offset, const void* buffer, MPI_Count count, const Datatype& type, Access* access);

  bool writes() const { return direction_ == Direction::kWrite; }
  int64_t position() const { return position_; }   // in the stream of the view
  int64_t bytes() const { return bytes_; }         // bytes of the stream
  int64_t etypes() const { return bytes_ / view_->etype_bytes(); }
  const View& view() const { return *view_; }
  File& file() const { return *file_; }

  // BeginMemory and EndMemory enclose a transfer. In between, memory() is the memory to move, in the file's
  // representation. BeginMemory converts data to be written, EndMemory data that was read.
  Error BeginMemory();
  TypeCursor memory() const;
  // `moved`: bytes of the stream. Stores the corresponding number of bytes of the program's data in `*data`.
  Error EndMemory(int64_t moved, MPI_Count* data);

  // Carries out the access, by this process alone. `*data`: bytes of the program's data that were moved.
  Error Run(MPI_Count* data);
  // The error for an errno of this access.
  Error Failure(int error) const;

 private:
  Error RunInMemory(int64_t* moved);
  bool is_converted() const { return !view_->representation().as_in_memory(); }

  Ref<File> file_;
  Ref<View> view_;
  Ref<const Datatype> type_;
  Direction direction_ = Direction::kRead;
  Hints hints_;
  bool atomic_ = false;
  void* buffer_ = nullptr;
  MPI_Count count_ = 0;
  int64_t position_ = 0, bytes_ = 0;
  std::unique_ptr<uint8_t[]> converted_;
  const Datatype* byte_ = nullptr;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_ACCESS_H_
