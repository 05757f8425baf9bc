#include "mpi_hybrid/io/collective.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/io/agreement.h"
#include "mpi_hybrid/io/two_phase.h"

namespace weft::mpi::io {
namespace {

// Pieces of this length are moved as fast by their ranks as through an aggregator's buffer.
constexpr int64_t kPieceForItself = 64 << 10;

Extent ExtentOf(const Access& access) {
  const View& view = access.view();
  Extent extent;
  extent.bytes = access.bytes();
  if (extent.bytes == 0) return extent;
  extent.first = view.OffsetOf(access.position());
  extent.end = view.OffsetOf(access.position() + access.bytes() - 1) + 1;
  extent.piece = std::clamp<int64_t>(view.piece_bytes(), 1, extent.bytes);
  return extent;
}

// Whether the stretches of two ranks overlap.
bool AreInterleaved(std::vector<Extent> extents) {
  std::erase_if(extents, [](const Extent& extent) { return extent.bytes == 0; });
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.first < b.first; });
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].first < extents[i - 1].end) return true;
  }
  return false;
}

bool UsesTwoPhases(const File& file, const Access& access, const std::vector<Extent>& extents) {
  const Hints::Choice choice = access.writes() ? file.hints.cb_write : file.hints.cb_read;
  // In atomic mode each access must be one, which locks make it.
  if (choice == Hints::Choice::kDisable || file.atomic) return false;
  int64_t shortest = INT64_MAX;
  for (const Extent& extent : extents) {
    if (extent.bytes > 0) shortest = std::min(shortest, extent.piece);
  }
  if (shortest == INT64_MAX) return false;  // nobody has data
  return choice == Hints::Choice::kEnable || (shortest < kPieceForItself && AreInterleaved(extents));
}

Error RunTwoPhases(File& file, Access& access, std::vector<Extent> extents, MPI_Count* moved) {
  if (file.aggregators && !file.aggregators->Suits(file.hints.cb_nodes, file.hints.cb_buffer_size)) {
    const std::unique_ptr<Aggregators> dropped = std::move(file.aggregators);
    const Error met = Meet(*file.comm);
    const Error freed = dropped->Drop(!met.ok());
    WEFT_MPI_TRY(Agree(*file.comm, met.ok() ? freed : met));
  }
  if (!file.aggregators) {
    auto made = std::make_unique<Aggregators>();
    WEFT_MPI_TRY(made->Make(*file.comm, file.hints.cb_nodes, file.hints.cb_buffer_size));
    file.aggregators = std::move(made);
  }
  // A rank whose data could not be converted would leave the others waiting.
  WEFT_MPI_TRY(Agree(*file.comm, access.BeginMemory()));
  int64_t stream = 0;
  TwoPhase two_phase(file, access, *file.aggregators, std::move(extents));
  Error error = access.writes() ? two_phase.Write(&stream) : two_phase.Read(&stream);
  Error ended = access.EndMemory(stream, moved);
  return error.ok() ? ended : error;
}

}  // namespace

Error RunTogether(File& file, Access& access, const Error& begun, MPI_Count* moved) {
  *moved = 0;
  Comm& comm = *file.comm;
  std::vector<Extent> extents;
  if (comm.size() > 1) {
    Extent mine;
    if (begun.ok()) mine = ExtentOf(access);
    mine.failed = !begun.ok();
    extents.resize(static_cast<size_t>(comm.size()));
    WEFT_MPI_TRY(GatherBytes(comm, &mine, sizeof mine, extents.data()));
    if (std::any_of(extents.begin(), extents.end(), [](const Extent& extent) { return extent.failed != 0; })) return Agree(comm, begun);
    for (size_t rank = 0; rank < extents.size(); ++rank) {
      // The same at all ranks.
      if (!extents[rank].MakesSense()) return Error(MPI_ERR_INTERN, file.name + ": rank " + std::to_string(rank) + " announced an invalid part of the file");
    }
    if (UsesTwoPhases(file, access, extents)) return Agree(comm, RunTwoPhases(file, access, std::move(extents), moved));
  }
  Error error = begun;
  if (begun.ok()) {
    const UnlockGuard unlocked;
    error = access.Run(moved);
  }
  return Agree(comm, error);
}

}  // namespace weft::mpi::io
