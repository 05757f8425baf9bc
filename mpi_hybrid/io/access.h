#ifndef MPI_HYBRID_IO_ACCESS_H_
#define MPI_HYBRID_IO_ACCESS_H_

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/io/file.h"

namespace weft::mpi::io {

// One data access: so many elements of the program's memory, and the place in the view's stream where they belong. Made with the lock;
// Run needs none. Keeps file, view and type, so that it must go with the lock held, too.
class Access {
 public:
  enum class Direction : uint8_t { kRead, kWrite };

  // `offset` in etypes, not negative. An error: the amount is not a multiple of an etype, the file may not be accessed so, no view
  // reaches so far.
  static Error Make(File& file, Direction direction, int64_t offset, const void* buffer, MPI_Count count, const Datatype& type, Access* access);

  bool writes() const { return direction_ == Direction::kWrite; }
  int64_t position() const { return position_; }   // in the stream of the view
  int64_t bytes() const { return bytes_; }         // of the stream
  int64_t etypes() const { return bytes_ / view_->etype_bytes(); }
  const View& view() const { return *view_; }
  File& file() const { return *file_; }

  // Memory as the file has it: what is moved is `memory` then, and converted before it is written and after it was read.
  Error BeginMemory();
  TypeCursor memory() const;
  // `moved` bytes of the stream: how many bytes of the program's data that makes, in `*data`.
  Error EndMemory(int64_t moved, MPI_Count* data);

  // Carries it out, by this process alone. `*data`: bytes of the program's data that were moved.
  Error Run(MPI_Count* data);
  // The words for an errno.
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
