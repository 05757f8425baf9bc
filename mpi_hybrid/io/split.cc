#include "mpi_hybrid/io/split.h"

#include <utility>

#include "mpi_hybrid/p2p/progress.h"
#include "mpi_hybrid/p2p/request/request.h"

namespace weft::mpi::io {
namespace {

// What a file remembers of the half that began.
int Mark(Access::Direction direction, Place::Kind kind) { return static_cast<int>(kind) * 2 + (direction == Access::Direction::kWrite ? 1 : 0); }

}  // namespace

Error BeginSplit(File& file, Access::Direction direction, const Place& place, const Data& data, const Error& refusal) {
  Error may = refusal;
  const bool busy = file.split != nullptr;
  if (busy) may = Error(MPI_ERR_IO, file.name + ": a split collective call has begun and not ended, and a file has one at a time");
  Request* request = nullptr;
  WEFT_MPI_TRY(StartTransferTogether(file, direction, place, data, may, &request));
  if (busy) {
    Progress::Wait(*request);
    request->Release();
    return may;
  }
  file.split = request;
  file.split_mark = Mark(direction, place.kind);
  return {};
}

Error EndSplit(File& file, Access::Direction direction, Place::Kind kind, MPI_Count* moved) {
  *moved = 0;
  if (file.split == nullptr) return Error(MPI_ERR_IO, file.name + ": no split collective call has begun");
  if (file.split_mark != Mark(direction, kind)) {
    return Error(MPI_ERR_IO, file.name + ": the split collective call that has begun is another one");
  }
  Request* request = std::exchange(file.split, nullptr);
  Progress::Wait(*request);
  Error error = std::move(request->error);
  *moved = GetCount(request->status);
  request->Release();
  return error;
}

}  // namespace weft::mpi::io
