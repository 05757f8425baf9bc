#include "mpi_hybrid/io/operations.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/io/agreement.h"
#include "mpi_hybrid/io/background.h"
#include "mpi_hybrid/io/collective.h"

namespace weft::mpi::io {
namespace {

// MPI_MODE_SEQUENTIAL has only the shared pointer, and where it has a pointer it moves.
Error CheckPlace(const File& file, const Place& place) {
  if (file.sequential() && place.kind != Place::Kind::kShared) {
    return Error(MPI_ERR_UNSUPPORTED_OPERATION, file.name + " was opened with MPI_MODE_SEQUENTIAL, which has only the shared file pointer");
  }
  if (place.kind == Place::Kind::kExplicit && place.offset < 0) {
    return Error(MPI_ERR_ARG, file.name + ": offset " + std::to_string(place.offset) + " is negative");
  }
  return {};
}

// The access, and the pointer moved. Not for the shared one.
Error Begin(File& file, Access::Direction direction, const Place& place, const Data& data, Access* access) {
  WEFT_MPI_TRY(CheckPlace(file, place));
  const bool own = place.kind == Place::Kind::kIndividual;
  WEFT_MPI_TRY(Access::Make(file, direction, own ? file.pointer : place.offset, data.buffer, data.count, *data.type, access));
  if (own) file.pointer += access->etypes();
  return {};
}

// All ranks move the shared pointer, and it wraps around.
Error CheckShared(const File& file, int64_t offset) {
  if (offset >= 0) return {};
  return Error(MPI_ERR_ARG, file.name + ": the shared file pointer is at " + std::to_string(offset) + ", beyond the end of the largest file");
}

Error BeginShared(File& file, Access::Direction direction, const Data& data, Access* access) {
  // First whether it may be at all, and how much it is.
  WEFT_MPI_TRY(Access::Make(file, direction, 0, data.buffer, data.count, *data.type, access));
  int64_t before = 0;
  WEFT_MPI_TRY(file.shared.Advance(access->etypes(), &before));
  WEFT_MPI_TRY(CheckShared(file, before));
  return Access::Make(file, direction, before, data.buffer, data.count, *data.type, access);
}

// Each rank's part behind those of the ranks before it.
Error BeginOrdered(File& file, Access::Direction direction, const Data& data, const Error& refusal, Access* access) {
  Comm& comm = *file.comm;
  struct Part {
    int64_t etypes;
    int64_t failed;
  };
  const Error made = refusal.ok() ? Access::Make(file, direction, 0, data.buffer, data.count, *data.type, access) : refusal;
  const Part mine = {made.ok() ? access->etypes() : 0, !made.ok()};
  std::vector<Part> parts(static_cast<size_t>(comm.size()));
  WEFT_MPI_TRY(GatherBytes(comm, &mine, sizeof mine, parts.data()));
  int64_t before = 0, all = 0, failed = 0;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const Part& part = parts[static_cast<size_t>(rank)];
    if (rank == comm.rank) before = all;
    if (part.etypes < 0 || __builtin_add_overflow(all, part.etypes, &all)) {
      return Error(MPI_ERR_ARG, file.name + ": the transfer of all ranks together ends beyond the end of the largest file");  // at all
    }
    failed |= part.failed;
  }
  if (failed != 0) return Agree(comm, made);
  struct Base {
    int64_t offset;
    int64_t failed;
  } base = {0, 0};
  Error advanced;
  if (comm.rank == 0) {
    advanced = file.shared.Advance(all, &base.offset);
    base.failed = !advanced.ok();
  }
  WEFT_MPI_TRY(TellBytes(comm, 0, &base, sizeof base));
  if (base.failed != 0) return Agree(comm, advanced);
  int64_t offset = 0;
  WEFT_MPI_TRY(CheckShared(file, __builtin_add_overflow(base.offset, before, &offset) ? -1 : std::min(base.offset, offset)));
  return Access::Make(file, direction, offset, data.buffer, data.count, *data.type, access);
}

Error BeginAlone(File& file, Access::Direction direction, const Place& place, const Data& data, Access* access) {
  if (place.kind == Place::Kind::kShared) return BeginShared(file, direction, data, access);
  return Begin(file, direction, place, data, access);
}

// After what goes on together already, as the ranks of a communicator say one thing after the other.
Error BeginTogether(File& file, Access::Direction direction, const Place& place, const Data& data, const Error& refusal, Access* access) {
  if (place.kind == Place::Kind::kShared) {
    AwaitTogether(file);
    return BeginOrdered(file, direction, data, refusal, access);
  }
  return refusal.ok() ? Begin(file, direction, place, data, access) : refusal;
}

}  // namespace

Error Transfer(File& file, Access::Direction direction, const Place& place, const Data& data, MPI_Count* moved) {
  Access access;
  *moved = 0;
  WEFT_MPI_TRY(BeginAlone(file, direction, place, data, &access));
  const UnlockGuard unlocked;
  return access.Run(moved);
}

Error StartTransfer(File& file, Access::Direction direction, const Place& place, const Data& data, Request** request) {
  Access access;
  WEFT_MPI_TRY(BeginAlone(file, direction, place, data, &access));
  StartAlone(std::move(access), request);
  return {};
}

Error TransferTogether(File& file, Access::Direction direction, const Place& place, const Data& data, const Error& refusal, MPI_Count* moved) {
  Access access;
  AwaitTogether(file);
  const Error begun = BeginTogether(file, direction, place, data, refusal, &access);
  return RunTogether(file, access, begun, moved);
}

Error StartTransferTogether(File& file, Access::Direction direction, const Place& place, const Data& data, const Error& refusal, Request** request) {
  Access access;
  const Error begun = BeginTogether(file, direction, place, data, refusal, &access);
  if (file.comm->size() == 1) WEFT_MPI_TRY(begun);
  StartTogether(file, std::move(access), begun, request);
  return {};
}

}  // namespace weft::mpi::io
