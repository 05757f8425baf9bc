#include <algorithm>
#include <atomic>
#include <string>

#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/host/this_host.h"
#include "mpi_hybrid/rma/apply.h"
#include "mpi_hybrid/rma/rdma_window.h"

// Small pieces, and accumulates, at memory of another process of this host that this one cannot map. In epochs that end with a call of the target (fences; start and
// complete) they are kept in a parcel, and the target carries them out in that call: after its fence has heard of all others, or in MPI_Win_wait. A Put is over
// for the origin when its parcel is handed over, which waits for nobody. In epochs of locks, and where anything but another such operation on the same
// target follows, the origin carries them out itself by calls of the kernel: then the target need not do anything.
//
// What the target has to carry out after a fence is not there yet when the others leave it. Each of them looks whether there is something before it
// copies from or to that target, and waits until the target has left the fence, too. The target is in it, so that this ends.
namespace weft::mpi::rma {
namespace {

constexpr MPI_Aint kLongestLater = 16384;  // bytes of an operation of long pieces that may follow in a parcel
constexpr MPI_Aint kLongestAccumulate = 65536;  // in one piece: the origin would copy twice, with the target's lock held

// Whether a block, of whole elements one extent apart, is of the `size` bytes of a window. The addresses of its bytes are at most 2^63 (ParseData).
bool LiesWithin(const Block& block, const ElementType& type, uint64_t size) {
  if (block.bytes % type.size != 0) return false;
  const uint64_t span = uint64_t{block.bytes / type.size - 1} * type.extent + type.span;
  const __int128 first = block.offset, last = first + static_cast<__int128>(block.count - 1) * block.stride;
  return std::min(first, last) >= 0 && std::max(first, last) + span <= size;
}

}  // namespace

bool RdmaWindow::MayDefer(Peer& peer, const Target& target, MPI_Aint bytes, bool accumulates) {
  if (!takes_parcels_ || !(epochs_.in_fence() || epochs_.in_start())) return false;
  if (peer.parcel != nullptr && !peer.parcel->empty() && bytes <= kLongestLater) return true;
  if (!HasSmallPieces(target, bytes) && !(accumulates && bytes <= kLongestAccumulate)) return false;
  if (host_.control(RankOf(peer)).signals[comm->rank].parcel.load(std::memory_order_acquire) != 0) return false;  // of an epoch that failed
  if (peer.parcel == nullptr) peer.parcel = std::make_unique<Parcel>(*host::ThisHost(), comm->size());
  peer.parcel->Returned();
  return true;
}

// Before the kernel copies from or to the memory of `peer`.
Error RdmaWindow::BeforeCopy(Peer& peer) {
  if (!takes_parcels_) return {};
  const int rank = RankOf(peer);
  const ControlHead& head = *host_.control(rank).head;
  const auto left = [&] { return static_cast<int32_t>(head.left.load(std::memory_order_acquire) - fences_) >= 0; };
  if (head.parcels[fences_ & 1].load(std::memory_order_acquire) == fences_ && !left()) {
    AwaitHost([&] { return left() || Gone(peer); }, [&] { return rank; });
    if (!overwritten_.empty()) return OverwrittenError();
    if (!left()) return GoneError(rank);
  }
  return {};
}

Error RdmaWindow::CarryOutParcel(Peer& peer) {
  if (peer.parcel == nullptr || peer.parcel->empty()) return {};
  Error error;
  const bool all = peer.parcel->ForEach([&](ByteSpan message) { return (error = CarryOut(peer, message)).ok(); });
  peer.parcel->Clear(/*handed_over=*/false);
  if (!error.ok() || all) return error;
  return Error(MPI_ERR_OTHER, "operations deferred for rank " + std::to_string(RankOf(peer)) + " of the window cannot be read again");
}

Error RdmaWindow::CarryOutDeferred(Peer& peer) {
  WEFT_MPI_TRY(BeforeCopy(peer));
  return CarryOutParcel(peer);
}

// A message that the target would apply. It may have been in memory that others can write to.
Error RdmaWindow::CarryOut(Peer& peer, ByteSpan message) {
  const auto header = ParseHeader(message);
  Block blocks[kMaxBlocks];
  ByteSpan given;
  const auto data = header ? ParseData(message.subspan(kHeaderBytes), true, blocks, &given) : std::nullopt;
  ElementType type = kByteElements;
  const bool accumulates = header && header->kind == MessageKind::kAccumulate;
  bool valid = data && (header->kind == MessageKind::kPut || accumulates);
  if (valid && accumulates) valid = FindElementType(data->basic, &type) && Op::IsDefined(data->op, data->basic);
  for (size_t i = 0; valid && i < data->blocks; ++i) valid = LiesWithin(blocks[i], type, peer.size);
  if (!valid) return Error(MPI_ERR_OTHER, "operations deferred for rank " + std::to_string(RankOf(peer)) + " of the window were overwritten");
  for (size_t i = 0; i < data->blocks; ++i) blocks[i].offset += peer.base;
  const BlockSource::Part part{{blocks, data->blocks}, data->bytes};
  ProcessMemory& memory = *peer.private_memory;
  return CopyError(peer, accumulates ? AccumulateInProcess(memory, peer.guard, data->op, type, part, given.data(), nullptr)
                                     : WriteBlocks(memory, part, given.data()));
}

Error RdmaWindow::Defer(const Access& access, const Origin& origin, const Target& target, const Op* op, const ElementType& type) {
  Peer& peer = *access.peer;
  const MessageHeader header{.kind = op == nullptr ? MessageKind::kPut : MessageKind::kAccumulate};
  TypeCursor here(origin.buffer, origin.count, *origin.type);
  BlockSource source(access.offset, target.count, *target.type, type, access.bytes);
  ++g_counters.deferred_operations;
  if (peer.parcel->empty()) deferred_.push_back(RankOf(peer));
  while (!source.done()) {
    const BlockSource::Part part = source.Next();
    uint8_t at_once[kSlotBytes];
    uint8_t* room = peer.parcel->Begin();
    if (room == nullptr) {
      WEFT_MPI_TRY(CarryOutDeferred(peer));
      room = at_once;
    }
    size_t bytes = WriteHeader(header, {room, kSlotBytes});
    DataHeader data{.bytes = static_cast<uint32_t>(part.bytes)};
    if (op != nullptr) {
      data.op = op->handle;
      data.basic = type.handle;
    }
    bytes += WriteDataHeader(data, part.blocks, {room + bytes, kSlotBytes - bytes});
    Pack(here, {room + bytes, part.bytes});
    bytes += part.bytes;
    if (room == at_once) {
      WEFT_MPI_TRY(CarryOut(peer, {room, bytes}));
    } else {
      peer.parcel->End(bytes);
    }
  }
  return {};
}

// What is kept for `rank` goes to it, before it is told of the end of the epoch, which `epoch` names (Signals::parcel).
Error RdmaWindow::HandOver(int rank, uint64_t epoch) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (peer.parcel == nullptr || peer.parcel->empty()) return {};
  if (!peer.parcel->Seal()) return CarryOutDeferred(peer);
  Signals& signals = host_.control(rank).signals[comm->rank];
  signals.parcel_offset.store(peer.parcel->offset(), std::memory_order_relaxed);
  signals.parcel_bytes.store(peer.parcel->bytes(), std::memory_order_relaxed);
  signals.parcel.store(epoch, std::memory_order_release);
  peer.parcel->Clear(/*handed_over=*/true);
  return {};
}

// Before the fence that is next.
Error RdmaWindow::HandOverAll() {
  const uint32_t fence = fences_ + 1;
  Error first;
  for (int rank : deferred_) {
    Error error = HandOver(rank, Signals::ParcelOfFence(fence));
    if (error.ok()) host_.control(rank).head->parcels[fence & 1].store(fence, std::memory_order_release);
    if (first.ok()) first = std::move(error);
  }
  deferred_.clear();
  return first;
}

// The target's side: what `rank` has handed over with the end of that epoch.
Error RdmaWindow::TakeParcel(int rank, uint64_t epoch) {
  Signals& signals = own_.control.signals[rank];
  if (signals.parcel.load(std::memory_order_acquire) != epoch) return {};
  host::Segment& segment = *host::ThisHost();
  const uint64_t offset = signals.parcel_offset.load(std::memory_order_relaxed), bytes = signals.parcel_bytes.load(std::memory_order_relaxed);
  size_t nothing;
  MappedMemory memory(own_);
  Applied outcome = Applied::kDone;
  const auto apply = [&](ByteSpan message) {
    const auto header = ParseHeader(message);
    if (!header || header->wants_reply || (header->kind != MessageKind::kPut && header->kind != MessageKind::kAccumulate)) return false;
    outcome = ApplyData(*header, message.subspan(kHeaderBytes), own_, nullptr, &nothing, &memory);
    return outcome == Applied::kDone;
  };
  const bool applied = peers_[static_cast<size_t>(rank)].parcels.Read(segment, offset, bytes, apply);
  const bool unmapped = outcome == Applied::kNotMapped;
  if ((applied || unmapped) && bytes > Parcel::KeptBytes(comm->size())) segment.Discard(offset, bytes);
  signals.parcel.store(0, std::memory_order_release);
  if (applied) return {};
  if (unmapped) {
    const std::string what = "operations of rank " + std::to_string(rank) + " of the window in this epoch could not all be carried out";
    return Error(MPI_ERR_RMA_RANGE, what + ": memory of the window is not mapped any more in this process");
  }
  overwritten_ = "operations that rank " + std::to_string(rank) + " deferred to this one were overwritten, or cannot be read";
  return OverwrittenError();
}

Error RdmaWindow::FenceWithParcels() {
  Error handed = HandOverAll();
  Error met = Meet();
  Error left = LeaveFence();
  WEFT_MPI_TRY(std::move(met));
  WEFT_MPI_TRY(std::move(handed));
  return left;
}

// Behind a fence that all have come to, or that has failed.
Error RdmaWindow::LeaveFence() {
  ControlHead& head = *own_.control.head;
  const bool has_parcels = head.parcels[fences_ & 1].load(std::memory_order_acquire) == fences_;
  Error first;
  for (int rank = 0; has_parcels && rank < comm->size(); ++rank) {
    Error error = TakeParcel(rank, Signals::ParcelOfFence(fences_));
    if (first.ok()) first = std::move(error);
  }
  head.left.store(fences_, std::memory_order_release);
  if (!has_parcels) return first;  // nobody waits for it
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one of who sleeps until this rank has left
  for (int rank = 0; rank < comm->size(); ++rank) {
    if (rank != comm->rank) host_.Wake(rank);
  }
  return first;
}

}  // namespace weft::mpi::rma
