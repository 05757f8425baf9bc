#include <algorithm>
#include <string>

#include "base/copy.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/rma/pairwise.h"
#include "mpi_hybrid/rma/rdma_window.h"
#include "mpi_hybrid/rma/service.h"

// Put and Get, and what all communication calls begin with.
namespace weft::mpi::rma {
namespace {

// Average length of the target's pieces from which on one RDMA operation for each is cheaper than a message that the service
// unpacks.
constexpr MPI_Aint kRdmaPiece = 512;
// Of the origin's, from which on each is sent from where it is.
constexpr MPI_Aint kDirectPiece = 2048;
// Up to here memory of an RNIC that pins pages is copied rather than registered.
constexpr MPI_Aint kCopied = 16384;
// Up to here data of dynamic windows goes by message, instead of asking for the key of the memory first.
constexpr MPI_Aint kDynamicMessage = 16384;
// Up to here the first Get of an epoch of MPI_Win_fence goes by message: what the fence tells the target need not wait for the answer, as
// it has to behind a Read.
constexpr MPI_Aint kFenceGet = 8192;
// Up to here it is a message, too, which the target answers with an RDMA Write from its window to the origin. The origin's fence does not count at the
// target until its RNIC has taken the data (Service::OnGetByWrite): a long Get would keep the target in its fence.
constexpr MPI_Aint kFenceGetByWrite = kMostGetByWrite;
// Up to here an RDMA operation behind messages becomes one rather than wait for them.
constexpr MPI_Aint kDetour = 8192;
// Up to here the only operation of an epoch goes with its lock and unlock.
constexpr MPI_Aint kStaged = 8192;

MPI_Aint AveragePiece(MPI_Aint bytes, MPI_Aint count, const Datatype& type) {
  if (type.dense || type.pieces == 0) return bytes;
  if (type.pieces == 1 && count == 1) return bytes;
  return type.size / type.pieces;
}

// Other threads that want the library's lock have it between parts of it. Where the two overlap it is one copy.
[[gnu::noinline]] void MoveLongBytes(uint8_t* to, const uint8_t* from, size_t bytes) {
  const bool overlap = reinterpret_cast<uintptr_t>(to) < reinterpret_cast<uintptr_t>(from) + bytes &&
                       reinterpret_cast<uintptr_t>(from) < reinterpret_cast<uintptr_t>(to) + bytes;
  while (bytes > LibraryLock::kMostCopied && !overlap) {
    MoveShortBytes(to, from, LibraryLock::kMostCopied);
    to += LibraryLock::kMostCopied;
    from += LibraryLock::kMostCopied;
    bytes -= LibraryLock::kMostCopied;
    LibraryLock::HandOver();
  }
  MoveShortBytes(to, from, bytes);
}

void MoveDense(void* to, const void* from, size_t bytes) {
  if (bytes <= LibraryLock::kMostCopied) [[likely]] return MoveShortBytes(to, from, bytes);
  MoveLongBytes(static_cast<uint8_t*>(to), static_cast<const uint8_t*>(from), bytes);
}

bool Scattered(const Origin& origin) { return !origin.type->dense && (origin.count != 1 || origin.type->pieces != 1); }


}  // namespace

// --- checks ---

Error RdmaWindow::CheckRank(int rank) const {
  if (rank >= 0 && rank < comm->size()) return {};
  return Error(MPI_ERR_RANK,
               "target rank " + std::to_string(rank) + " is not below the window's size " + std::to_string(comm->size()));
}

Error RdmaWindow::CheckRange(const Target& target, const Peer& peer, uint64_t* offset) const {
  MPI_Aint low = 0, high = 0;
  MemorySpan(target.count, *target.type, &low, &high);
  if (flavor == MPI_WIN_FLAVOR_DYNAMIC) {
    *offset = static_cast<uint64_t>(target.displacement);
    return {};
  }
  const __int128 first = static_cast<__int128>(target.displacement) * peer.unit;
  *offset = static_cast<uint64_t>(first);
  if (target.displacement < 0) {
    return Error(MPI_ERR_DISP, "target displacement " + std::to_string(target.displacement) + " is negative");
  }
  if (high == low || (first + low >= 0 && first + high <= static_cast<__int128>(peer.size))) return {};
  return Error(MPI_ERR_RMA_RANGE, "target displacement " + std::to_string(target.displacement) + " times " +
                                      std::to_string(peer.unit) + " with data from byte " + std::to_string(low) + " to " +
                                      std::to_string(high) + " is not inside the target's " + std::to_string(peer.size) +
                                      " bytes");
}

// The same without a walk over the type, where none is needed to know that it is inside.
inline bool RdmaWindow::InsideAtOnce(const Target& target, const Peer& peer, MPI_Aint bytes, uint64_t* offset) const {
  if (!target.type->dense || target.displacement < 0 || flavor == MPI_WIN_FLAVOR_DYNAMIC) return false;
  if (__builtin_mul_overflow(static_cast<uint64_t>(target.displacement), static_cast<uint64_t>(peer.unit), offset)) return false;
  return *offset <= peer.size && static_cast<uint64_t>(bytes) <= peer.size - *offset;
}

Error RdmaWindow::BeginAccess(const Target& target, MPI_Aint origin_bytes, bool with_request, Access* access) {
  if (target.rank == MPI_PROC_NULL) return {};
  if (static_cast<size_t>(target.rank) >= peers_.size()) [[unlikely]]
    return CheckRank(target.rank);
  WEFT_MPI_TRY(epochs_.Access(target.rank, with_request));
  Peer& peer = peers_[static_cast<size_t>(target.rank)];
  const MPI_Aint target_bytes = target.count * target.type->size;
  if (!InsideAtOnce(target, peer, target_bytes, &access->offset)) WEFT_MPI_TRY(CheckRange(target, peer, &access->offset));
  if (origin_bytes != target_bytes) {
    return Error(MPI_ERR_TRUNCATE,
                 "the origin's data is " + std::to_string(origin_bytes) + " bytes, the target's " + std::to_string(target_bytes));
  }
  access->bytes = target_bytes;
  if (target_bytes == 0) return {};
  access->peer = &peer;
  if (!peer.here || !AccessIsOpen(peer)) {
    access->staged = Stage(target, *access, with_request);
    if (!access->staged) WEFT_MPI_TRY(EnsureAccess(target.rank));
  }
  if (peer.here) {  // what is done there is complete when the call returns
    if (flavor != MPI_WIN_FLAVOR_DYNAMIC || LocalMemoryAttached(*access, target)) [[likely]]
      return {};
    return Error(MPI_ERR_RMA_RANGE, "the memory is not attached to the window");
  }
  WEFT_MPI_TRY(device_->Find(peer.process, &access->link));
  ++peer.operations;
  if (!peer.used) {
    peer.used = true;
    used_.push_back(target.rank);
  }
  return {};
}

bool RdmaWindow::Stage(const Target& target, const Access& access, bool with_request) {
  const Peer& peer = *access.peer;
  if (peer.wanted == LockKind::kNone || peer.locked || peer.being_locked || staged_.rank >= 0) return false;
  if (with_request || flavor == MPI_WIN_FLAVOR_DYNAMIC || !target.type->dense || access.bytes > kStaged) return false;
  if (staged_.body == nullptr) staged_.body = std::make_unique<uint8_t[]>(kSlotBytes - kHeaderBytes);
  staged_.rank = target.rank;
  return true;
}

Error RdmaWindow::BeginData(const Access& access, uint8_t** room) {
  if (!access.staged) return access.link->BeginMessage(room);
  *room = staged_.body.get();
  return {};
}

Error RdmaWindow::SendData(const Access& access, MessageKind kind, size_t bytes, const Reply* reply, bool more) {
  if (!access.staged) {
    return access.link->SendMessage(kind, access.peer->window, bytes, {.reply = reply, .waits = access.waits || more});
  }
  staged_.kind = kind;
  staged_.bytes = bytes;
  staged_.wants_reply = reply != nullptr;
  staged_.reply = reply == nullptr ? Reply{} : *reply;
  return {};
}

bool RdmaWindow::LocalMemoryAttached(const Access& access, const Target& target) {
  if (flavor != MPI_WIN_FLAVOR_DYNAMIC) return true;
  BlockSource source(access.offset, target.count, *target.type, kByteElements, access.bytes);
  std::lock_guard lock(device_->service().mutex());
  while (!source.done()) {
    for (const Block& block : source.Next().blocks) {
      uint64_t offset = block.offset;
      for (uint32_t i = 0; i < block.count; ++i, offset += static_cast<uint64_t>(block.stride)) {
        if (own_.Resolve(offset, block.bytes) == nullptr) return false;
      }
    }
  }
  return true;
}

void RdmaWindow::FinishedRequest(Request** request) {
  if (request == nullptr) return;
  auto* made = new RmaRequest;
  made->AddRef();
  made->PartDone();
  *request = made;
}

Error RdmaWindow::KeepOrder(const Access& access, bool* rdma) {
  if (!*rdma || !access.link->changes_pending()) [[likely]]
    return {};
  if (access.bytes > kDetour || !access.link->TakeDetour()) return access.link->AwaitChanges();
  *rdma = false;
  return {};
}

template <typename Body>
Error RdmaWindow::WithRequest(Access& access, Request** request, Body body) {
  if (request == nullptr) return body();
  auto* made = new RmaRequest;
  made->AddRef();
  access.request = made;
  Error error = body();
  if (error.ok()) error = access.link->Ring();
  made->PartDone(error);
  if (error.ok()) {
    *request = made;
  } else {
    made->Release();
  }
  return error;
}

// --- Put ---

Error RdmaWindow::Put(const Origin& origin, const Target& target, Request** request) {
  Access access;
  WEFT_MPI_TRY(BeginAccess(target, origin.count * origin.type->size, request != nullptr, &access));
  if (access.peer == nullptr || access.link == nullptr) {
    if (access.peer != nullptr) WEFT_MPI_TRY(PutHere(access, origin, target));
    FinishedRequest(request);
    return {};
  }
  return WithRequest(access, request, [&]() -> Error {
    uint32_t key = access.peer->key;
    bool rdma = AveragePiece(access.bytes, target.count, *target.type) >= kRdmaPiece || !(target.count * target.type->pieces > 1);
    if (flavor == MPI_WIN_FLAVOR_DYNAMIC) {
      rdma = rdma && access.bytes > kDynamicMessage;
      if (rdma) WEFT_MPI_TRY(FindKey(access, target, &key, &rdma));
    } else if (target.type->dense) {
      rdma = !access.staged;
    }
    WEFT_MPI_TRY(KeepOrder(access, &rdma));
    return rdma ? PutRdma(access, origin, target, key) : PutMessages(access, origin, target);
  });
}

Error RdmaWindow::PutHere(const Access& access, const Origin& origin, const Target& target) {
  Peer& peer = *access.peer;
  if (peer.private_memory == nullptr && origin.type->dense && target.type->dense) [[likely]] {
    MoveDense(peer.local + access.offset, origin.buffer, static_cast<size_t>(access.bytes));
    return {};
  }
  if (!IsCopied(peer)) {
    return CopyTyped(origin.buffer, origin.count, *origin.type, peer.local + access.offset, target.count, *target.type);
  }
  return PutCopied(access, origin, target);
}

Registration* RdmaWindow::RegisterOrigin(const Origin& origin, MPI_Aint bytes, bool sink) {
  if (Scattered(origin) && AveragePiece(bytes, origin.count, *origin.type) < kDirectPiece) return nullptr;
  if (!device_->registers_cheaply() && bytes <= kCopied) return nullptr;
  MPI_Aint low = 0, high = 0;
  MemorySpan(origin.count, *origin.type, &low, &high);
  return device_->registrations().Acquire(static_cast<const uint8_t*>(origin.buffer) + low, static_cast<size_t>(high - low),
                                          sink);
}

Error RdmaWindow::PutRdma(const Access& access, const Origin& origin, const Target& target, uint32_t key) {
  Link& link = *access.link;
  const uint64_t to = flavor == MPI_WIN_FLAVOR_DYNAMIC ? access.offset : access.peer->base + access.offset;
  if (origin.type->dense && target.type->dense && access.bytes <= link.inline_room()) [[likely]] {
    return link.Write(origin.buffer, 0, to, key, static_cast<size_t>(access.bytes));
  }
  Registration* registration = RegisterOrigin(origin, access.bytes, false);
  if (registration == nullptr) return PutThroughBounce(access, origin, target, key);
  TypeCursor here(origin.buffer, origin.count, *origin.type);
  TypeCursor there(reinterpret_cast<const void*>(to), target.count, *target.type);
  Pairwise pairs(here, there, static_cast<size_t>(access.bytes), device_->max_message());
  uint8_t* from;
  uint64_t address;
  size_t bytes;
  Error error;
  while (error.ok() && pairs.Next(&from, &address, &bytes)) error = link.Write(from, registration->mr->lkey, address, key, bytes);
  if (access.request != nullptr) access.request->AddPart();
  link.WhenComplete({.number = link.last_local(), .request = access.request, .registration = registration});
  return error;
}

Error RdmaWindow::WaitForBounce(Link& link, BufferPool::Buffer* buffer) {
  const auto found = [&] { return (*buffer = device_->bounce().Take()).bytes != nullptr; };
  if (found()) return {};
  WEFT_MPI_TRY(link.Ring());
  bool none = false;
  device_->Await([&] { return link.broken() || found() || (none = !device_->bounce().in_use()); });
  if (buffer->bytes != nullptr) return {};
  if (none) return Error(MPI_ERR_NO_MEM, "no memory can be registered for data on its way");
  return link.failure();
}

Error RdmaWindow::PutThroughBounce(const Access& access, const Origin& origin, const Target& target, uint32_t key) {
  Link& link = *access.link;
  const uint64_t to = flavor == MPI_WIN_FLAVOR_DYNAMIC ? access.offset : access.peer->base + access.offset;
  TypeCursor here(origin.buffer, origin.count, *origin.type);
  TypeCursor there(reinterpret_cast<const void*>(to), target.count, *target.type);
  while (here.position() < access.bytes) {
    BufferPool::Buffer buffer;
    WEFT_MPI_TRY(WaitForBounce(link, &buffer));
    size_t left = std::min<size_t>(Device::kBounceBytes, static_cast<size_t>(access.bytes - here.position()));
    Pack(here, {buffer.bytes, left});
    Error error;
    for (const uint8_t* from = buffer.bytes; error.ok() && left > 0;) {
      iovec piece{};
      there.Next({&piece, 1}, left);
      error = link.Write(from, buffer.key, reinterpret_cast<uint64_t>(piece.iov_base), key, piece.iov_len);
      from += piece.iov_len;
      left -= piece.iov_len;
    }
    link.WhenComplete({.number = link.last_local(), .pool = &device_->bounce(), .bounce = buffer});
    WEFT_MPI_TRY(std::move(error));
  }
  return {};
}

Error RdmaWindow::PutMessages(const Access& access, const Origin& origin, const Target& target) {
  TypeCursor here(origin.buffer, origin.count, *origin.type);
  BlockSource source(access.offset, target.count, *target.type, kByteElements, access.bytes);
  Reply storage;
  while (!source.done()) {
    const BlockSource::Part part = source.Next();
    uint8_t* room;
    WEFT_MPI_TRY(BeginData(access, &room));
    const size_t header =
        WriteDataHeader({.bytes = static_cast<uint32_t>(part.bytes)}, part.blocks, {room, kSlotBytes - kHeaderBytes});
    Pack(here, {room + header, part.bytes});
    WEFT_MPI_TRY(SendData(access, MessageKind::kPut, header + part.bytes, ReplyFor(access, false, &storage), !source.done()));
  }
  return {};
}

// A dynamic window's target may have to say that the memory is not attached.
Reply* RdmaWindow::ReplyFor(const Access& access, bool wanted, Reply* storage) {
  if (flavor != MPI_WIN_FLAVOR_DYNAMIC && !wanted) return nullptr;
  *storage = {};
  storage->out_of_range = &operation_failed_;
  storage->request = access.request;
  return storage;
}

// --- Get ---

Error RdmaWindow::Get(const Origin& origin, const Target& target, Request** request) {
  Access access;
  WEFT_MPI_TRY(BeginAccess(target, origin.count * origin.type->size, request != nullptr, &access));
  if (access.peer == nullptr || access.link == nullptr) {
    if (access.peer != nullptr) WEFT_MPI_TRY(GetHere(access, origin, target));
    FinishedRequest(request);
    return {};
  }
  return WithRequest(access, request, [&]() -> Error {
    uint32_t key = access.peer->key;
    const bool first = epochs_.in_fence() && target.type->dense && !access.link->awaits_data();
    const bool early = first && access.bytes <= kFenceGet;
    if (first && !early && access.bytes <= kFenceGetByWrite) {
      bool done = false;
      WEFT_MPI_TRY(GetByWrite(access, origin, &done));
      if (done) return {};
    }
    access.peer->got_early |= early;
    access.waits = early && request == nullptr;
    bool rdma = !access.staged && !early && (target.type->dense || target.count * target.type->pieces == 1 ||
                                   AveragePiece(access.bytes, target.count, *target.type) >= kRdmaPiece);
    if (flavor == MPI_WIN_FLAVOR_DYNAMIC) {
      rdma = rdma && access.bytes > kDynamicMessage;
      if (rdma) WEFT_MPI_TRY(FindKey(access, target, &key, &rdma));
    }
    WEFT_MPI_TRY(KeepOrder(access, &rdma));
    return rdma ? GetRdma(access, origin, target, key) : GetMessages(access, origin, target);
  });
}

Error RdmaWindow::GetHere(const Access& access, const Origin& origin, const Target& target) {
  Peer& peer = *access.peer;
  void* into = const_cast<void*>(origin.buffer);
  if (peer.private_memory == nullptr && origin.type->dense && target.type->dense) [[likely]] {
    MoveDense(into, peer.local + access.offset, static_cast<size_t>(access.bytes));
    return {};
  }
  if (!IsCopied(peer)) {
    return CopyTyped(peer.local + access.offset, target.count, *target.type, into, origin.count, *origin.type);
  }
  return GetCopied(access, origin, target);
}

Error RdmaWindow::GetRdma(const Access& access, const Origin& origin, const Target& target, uint32_t key) {
  Registration* registration = RegisterOrigin(origin, access.bytes, true);
  if (registration == nullptr) return GetThroughBounce(access, origin, target, key);
  Link& link = *access.link;
  const uint64_t base = flavor == MPI_WIN_FLAVOR_DYNAMIC ? access.offset : access.peer->base + access.offset;
  TypeCursor here(origin.buffer, origin.count, *origin.type);
  TypeCursor there(reinterpret_cast<const void*>(base), target.count, *target.type);
  Pairwise pairs(here, there, static_cast<size_t>(access.bytes), device_->max_message());
  uint8_t* into;
  uint64_t address;
  size_t bytes;
  Error error;
  while (error.ok() && pairs.Next(&into, &address, &bytes)) error = link.Read(into, registration->mr->lkey, address, key, bytes);
  if (access.request != nullptr) access.request->AddPart();
  link.WhenComplete({.number = link.last_local(), .request = access.request, .registration = registration});
  return error;
}

// The first Get of an epoch of fences; `done` false: it has to go another way.
Error RdmaWindow::GetByWrite(const Access& access, const Origin& origin, bool* done) {
  if (!device_->registers_cheaply() || flavor == MPI_WIN_FLAVOR_DYNAMIC || !origin.type->dense) return {};
  Link& link = *access.link;
  MPI_Aint low = 0, high = 0;
  MemorySpan(origin.count, *origin.type, &low, &high);
  const uint8_t* const into = static_cast<const uint8_t*>(origin.buffer) + low;
  Registration* const registration = device_->registrations().Acquire(into, static_cast<size_t>(access.bytes), true);
  if (registration == nullptr) return {};
  uint8_t* room;
  if (Error error = link.BeginMessage(&room); !error.ok()) {
    device_->registrations().Release(registration);
    return error;
  }
  const size_t bytes = WriteGetByWrite({.offset = access.offset,
                                        .address = reinterpret_cast<uintptr_t>(into),
                                        .key = registration->mr->rkey,
                                        .bytes = static_cast<uint32_t>(access.bytes)},
                                       {room, kSlotBytes - kHeaderBytes});
  const Reply reply{.request = access.request, .out_of_range = &operation_failed_, .filled = registration};
  *done = access.peer->got_early = true;
  return link.SendMessage(MessageKind::kGetByWrite, access.peer->window, bytes, {.reply = &reply, .waits = access.request == nullptr && static_cast<size_t>(access.bytes) <= Link::kWaits});
}

Error RdmaWindow::GetThroughBounce(const Access& access, const Origin& origin, const Target& target, uint32_t key) {
  Link& link = *access.link;
  const uint64_t base = flavor == MPI_WIN_FLAVOR_DYNAMIC ? access.offset : access.peer->base + access.offset;
  TypeCursor there(reinterpret_cast<const void*>(base), target.count, *target.type);
  while (there.position() < access.bytes) {
    BufferPool::Buffer buffer;
    WEFT_MPI_TRY(WaitForBounce(link, &buffer));
    Sink sink{const_cast<void*>(origin.buffer), origin.count, Ref<const Datatype>(origin.type), there.position(), 0};
    const size_t wanted = std::min<size_t>(Device::kBounceBytes, static_cast<size_t>(access.bytes - there.position()));
    Error error;
    while (error.ok() && sink.bytes < wanted) {
      iovec piece{};
      there.Next({&piece, 1}, wanted - sink.bytes);
      error = link.Read(buffer.bytes + sink.bytes, buffer.key, reinterpret_cast<uint64_t>(piece.iov_base), key, piece.iov_len);
      sink.bytes += piece.iov_len;
    }
    if (access.request != nullptr) access.request->AddPart();
    link.WhenComplete({.number = link.last_local(), .request = access.request, .pool = &device_->bounce(), .bounce = buffer, .sink = std::move(sink)});
    WEFT_MPI_TRY(std::move(error));
  }
  return {};
}

Error RdmaWindow::GetMessages(const Access& access, const Origin& origin, const Target& target) {
  BlockSource source(access.offset, target.count, *target.type, kByteElements, access.bytes);
  MPI_Aint position = 0;
  Reply reply;
  while (!source.done()) {
    const BlockSource::Part part = source.Next();
    uint8_t* room;
    WEFT_MPI_TRY(BeginData(access, &room));
    const size_t header =
        WriteDataHeader({.bytes = static_cast<uint32_t>(part.bytes)}, part.blocks, {room, kSlotBytes - kHeaderBytes});
    ReplyFor(access, true, &reply);
    reply.sink = {const_cast<void*>(origin.buffer), origin.count, Ref<const Datatype>(origin.type), position, part.bytes};
    WEFT_MPI_TRY(SendData(access, MessageKind::kGet, header, &reply, !source.done()));
    position += static_cast<MPI_Aint>(part.bytes);
  }
  return {};
}

Error RdmaWindow::FindKey(const Access& access, const Target& target, uint32_t* key, bool* found) {
  MPI_Aint low = 0, high = 0;
  MemorySpan(target.count, *target.type, &low, &high);
  ReplyWaiter waiter;
  const Reply reply{.waiter = &waiter};
  uint8_t* room;
  WEFT_MPI_TRY(access.link->BeginMessage(&room));
  const FindRegion message{access.offset + static_cast<uint64_t>(low), static_cast<uint64_t>(high - low)};
  const size_t bytes = WriteFindRegion(message, {room, kSlotBytes - kHeaderBytes});
  WEFT_MPI_TRY(access.link->SendMessage(MessageKind::kFindRegion, access.peer->window, bytes, {.reply = &reply}));
  device_->Await([&] { return waiter.done; });
  if (waiter.failed) return access.link->failure();
  *found = waiter.status == ReplyStatus::kDone && waiter.bytes == 4;
  if (*found) *key = ByteReader({waiter.data, 4}).U32();
  return {};
}

}  // namespace weft::mpi::rma
