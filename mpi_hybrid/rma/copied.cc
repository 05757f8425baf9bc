#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "mpi_hybrid/rma/rdma_window.h"

// Put and Get where the kernel copies: from and to memory of another process of this host that this one cannot map. The kernel takes as long for a piece of
// a few bytes of the other process as for kPieceCosts bytes in one piece, since it looks up the page for each. What the target carries out instead is in
// helped.cc.
namespace weft::mpi::rma {
namespace {

constexpr MPI_Aint kPieceCosts = 512;
constexpr MPI_Aint kFew = 1;                   // pieces
constexpr MPI_Aint kMostSpan = MPI_Aint{64} << 20;  // bytes

// At most, and none where data are in one.
MPI_Aint Pieces(MPI_Aint count, const Datatype& type) { return type.dense ? 0 : count * type.pieces; }

bool IsFine(MPI_Aint bytes, MPI_Aint count, const Datatype& type) {
  const MPI_Aint pieces = Pieces(count, type);
  return pieces > kFew && bytes / pieces < kPieceCosts;
}

}  // namespace

bool RdmaWindow::HasSmallPieces(const Target& target, MPI_Aint bytes) { return IsFine(bytes, target.count, *target.type); }

Error RdmaWindow::CopyPieces(Direction direction, const Access& access, const Origin& origin, const Target& target) {
  const Peer& peer = *access.peer;
  TypeCursor here(origin.buffer, origin.count, *origin.type);
  TypeCursor there(reinterpret_cast<const void*>(peer.base + access.offset), target.count, *target.type);
  const bool packs = IsFine(access.bytes, origin.count, *origin.type) && !IsFine(access.bytes, target.count, *target.type);
  const auto copy = packs ? CopyThroughBuffer : CopyWithProcess;
  return CopyError(peer, copy(direction, *peer.private_memory, here, there, static_cast<size_t>(access.bytes)));
}

Error RdmaWindow::PutCopied(const Access& access, const Origin& origin, const Target& target) {
  Peer& peer = *access.peer;
  WEFT_MPI_TRY(BeforeCopy(peer));
  if (MayDefer(peer, target, access.bytes, /*accumulates=*/false)) return Defer(access, origin, target, nullptr, kByteElements);
  WEFT_MPI_TRY(CarryOutParcel(peer));
  return CopyPieces(Direction::kToProcess, access, origin, target);
}

Error RdmaWindow::GetCopied(const Access& access, const Origin& origin, const Target& target) {
  WEFT_MPI_TRY(BeforeCopy(*access.peer));
  WEFT_MPI_TRY(CarryOutParcel(*access.peer));
  if (GetSpan(access, origin, target)) return {};
  return CopyPieces(Direction::kFromProcess, access, origin, target);
}

// Small pieces of the target are read with all that is between them, which is of the window, too. False: nothing was done, they are too far apart, or
// there is a hole between them.
bool RdmaWindow::GetSpan(const Access& access, const Origin& origin, const Target& target) {
  if (!IsFine(access.bytes, target.count, *target.type)) return false;
  MPI_Aint low = 0, high = 0;
  MemorySpan(target.count, *target.type, &low, &high);
  const MPI_Aint span = high - low;
  if (span > kMostSpan || span / kPieceCosts > Pieces(target.count, *target.type)) return false;
  const std::unique_ptr<uint8_t[]> copy(new (std::nothrow) uint8_t[static_cast<size_t>(span)]);
  const Peer& peer = *access.peer;
  const uint64_t from = peer.base + access.offset + static_cast<uint64_t>(low);
  if (copy == nullptr || peer.private_memory->Read(from, copy.get(), static_cast<size_t>(span)) != 0) return false;
  // By its address: where the type begins need not be in the copy.
  const auto* const begin = reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(copy.get()) - static_cast<uintptr_t>(low));
  return CopyTyped(begin, target.count, *target.type, const_cast<void*>(origin.buffer), origin.count, *origin.type).ok();
}

Error RdmaWindow::CopyError(const Peer& peer, int error) {
  if (error == 0) return {};
  if (error == ESRCH || host_.Ended(RankOf(peer)) || Gone(peer)) return GoneError(RankOf(peer));
  const std::string where = "between this process and rank " + std::to_string(RankOf(peer)) + " of the window";
  if (error == EFAULT) {
    return Error(MPI_ERR_RMA_RANGE, "the kernel cannot copy " + where + ": memory of one of them is not mapped");
  }
  return Error(MPI_ERR_OTHER, "the kernel does not copy " + where + ": " + std::strerror(error) + "; WEFT_SAME_HOST=off avoids such copies");
}

}  // namespace weft::mpi::rma
