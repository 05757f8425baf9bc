#include <cstring>
#include <optional>
#include <string>

#include "mpi_hybrid/datatype/predefined.h"
#include "mpi_hybrid/rma/apply.h"
#include "mpi_hybrid/rma/rdma_window.h"

// The accumulate family: applied by the target's service, or here where this process can reach the memory.
namespace weft::mpi::rma {
namespace {

std::string Name(MPI_Datatype type) {
  const Basic* basic = FindBasic(type);
  return basic == nullptr ? "a type of several basic types" : basic->name;
}

// CompareAndSwap is for integers, logical types and bytes (MPI 4.0 section 12.3.4).
bool Comparable(MPI_Datatype type) {
  const Basic* basic = FindBasic(type);
  return basic != nullptr && IsIntegral(basic->kind) && basic->size <= 16 && basic->size > 0;
}

void AccumulateBlocks(const AccumulateGuard& guard, MPI_Op op, const ElementType& type, const BlockSource::Part& part,
                      const uint8_t* given, uint8_t* fetched) {
  std::optional<WholeTurn> turn;
  if (TakesWholeTurn(guard, type, part.bytes / type.size)) turn.emplace(guard);
  for (const Block& block : part.blocks) {
    const uint32_t elements = block.bytes / type.size;
    uint64_t address = block.offset;
    for (uint32_t i = 0; i < block.count; ++i, address += static_cast<uint64_t>(block.stride)) {
      auto* const memory = reinterpret_cast<uint8_t*>(address);
      if (turn) {
        AccumulateInTurn(*turn, op, type, given, memory, elements, fetched);
      } else {
        AccumulateElements(guard, op, type, given, memory, elements, fetched);
      }
      if (given != nullptr) given += block.bytes;
      if (fetched != nullptr) fetched += block.bytes;
    }
  }
}

}  // namespace

Error RdmaWindow::CheckElements(const Origin& origin, const Target& target, const Op& op, ElementType* type) const {
  if (!op.builtin) return Error(MPI_ERR_OP, "operations of MPI_Op_create are not for accumulates");
  if (target.count == 0 || target.type->size == 0) return {};  // no element, so none of a wrong type
  if (!FindElementType(target.type->OnlyBasic(), type)) {
    return Error(MPI_ERR_TYPE, "the target's data is not of one predefined type");
  }
  if (!Op::IsDefined(op.handle, type->handle)) {
    return Error(MPI_ERR_OP, "the operation is not defined for " + Name(type->handle));
  }
  ElementType other;
  if (op.handle == MPI_NO_OP || origin.type == target.type) return {};  // its origin does not matter, or is the same
  if (!FindElementType(origin.type->OnlyBasic(), &other) || other.size != type->size ||
      FindBasic(other.handle)->kind != FindBasic(type->handle)->kind) {
    return Error(MPI_ERR_TYPE, "the origin's data is " + Name(origin.type->OnlyBasic()) + ", the target's " + Name(type->handle));
  }
  return {};
}

Error RdmaWindow::Accumulate(const Origin& origin, const Target& target, const Op& op, Request** request) {
  if (op.handle == MPI_NO_OP) return Error(MPI_ERR_OP, "MPI_NO_OP is for operations that fetch");
  ElementType type;
  WEFT_MPI_TRY(CheckElements(origin, target, op, &type));
  Access access;
  WEFT_MPI_TRY(BeginAccess(target, origin.count * origin.type->size, request != nullptr, &access));
  if (access.peer == nullptr || access.link == nullptr) {
    if (access.peer != nullptr) WEFT_MPI_TRY(AccumulateHere(access, origin, nullptr, target, op, type));
    FinishedRequest(request);
    return {};
  }
  access.waits = request == nullptr;
  if (request == nullptr) return AccumulateThere(access, origin, nullptr, target, op, type);
  access.request = new RmaRequest;
  access.request->AddRef();
  Error error = AccumulateThere(access, origin, nullptr, target, op, type);
  access.request->PartDone(error);
  *request = access.request;
  return {};
}

Error RdmaWindow::GetAccumulate(const Origin& origin, const Origin& result, const Target& target, const Op& op,
                                Request** request) {
  ElementType type;
  WEFT_MPI_TRY(CheckElements(origin, target, op, &type));
  Access access;
  const MPI_Aint bytes = result.count * result.type->size;
  if (op.handle != MPI_NO_OP && origin.count * origin.type->size != bytes) {
    return Error(MPI_ERR_COUNT, "the origin's data is " + std::to_string(origin.count * origin.type->size) +
                                    " bytes, the result's " + std::to_string(bytes));
  }
  WEFT_MPI_TRY(BeginAccess(target, bytes, request != nullptr, &access));
  if (access.peer == nullptr || access.link == nullptr) {
    if (access.peer != nullptr) WEFT_MPI_TRY(AccumulateHere(access, origin, &result, target, op, type));
    FinishedRequest(request);
    return {};
  }
  access.waits = request == nullptr && epochs_.in_fence();
  if (request == nullptr) return AccumulateThere(access, origin, &result, target, op, type);
  access.request = new RmaRequest;
  access.request->AddRef();
  Error error = AccumulateThere(access, origin, &result, target, op, type);
  access.request->PartDone(error);
  *request = access.request;
  return {};
}

Error RdmaWindow::FetchAndOp(const void* origin, void* result, const Datatype& type, const Target& target, const Op& op) {
  return GetAccumulate({origin, 1, &type}, {result, 1, &type}, target, op, nullptr);
}

// In epochs of locks. A fence, and the end of an epoch of MPI_Win_start, reach the target in one packet with the accumulates before them,
// if these are messages.
bool RdmaWindow::MayBeAtomic(const Access& access, const Target& target, const ElementType& type) const {
  return access.peer->atomics && access.link->has_atomics() && !access.staged && access.bytes == sizeof(uint64_t) && type.integral &&
         type.size == sizeof(uint64_t) && target.type->dense && (access.peer->base + access.offset) % sizeof(uint64_t) == 0 &&
         !epochs_.in_fence() && !epochs_.in_start();
}

Error RdmaWindow::PostAtomic(const Access& access, const RdmaAtomic& atomic, void* result, bool* done) {
  Link& link = *access.link;
  *done = true;
  WEFT_MPI_TRY(KeepOrder(access, done));
  BufferPool::Buffer word;
  if (*done && result != nullptr) *done = (word = device_->words().Take()).bytes != nullptr;
  if (!*done) return {};
  const bool wanted = result != nullptr;
  Error error = link.Atomic(atomic, wanted ? word.bytes : device_->proof(), wanted ? word.key : device_->proof_key(),
                            access.peer->base + access.offset, access.peer->key);
  if (access.request != nullptr) access.request->AddPart();
  Sink sink;
  if (wanted) sink = {result, 1, Ref<const Datatype>(Datatype::Find(MPI_UINT64_T)), 0, sizeof(uint64_t)};
  if (wanted || access.request != nullptr) {
    link.WhenComplete({.number = link.last_local(), .request = access.request, .pool = &device_->words(), .bounce = word, .sink = std::move(sink)});
  }
  if (error.ok() && access.request != nullptr) error = link.Ring();
  return error;
}

Error RdmaWindow::AccumulateThere(const Access& access, const Origin& origin, const Origin* result, const Target& target, const Op& op,
                                  const ElementType& type) {
  const bool fetches = op.handle == MPI_NO_OP;
  if ((op.handle == MPI_SUM || fetches) && MayBeAtomic(access, target, type) && (fetches || origin.type->dense) &&
      (result == nullptr || result->type->dense)) {
    RdmaAtomic add;
    if (!fetches) std::memcpy(&add.operand, origin.buffer, sizeof add.operand);
    bool done;
    WEFT_MPI_TRY(PostAtomic(access, add, result == nullptr ? nullptr : const_cast<void*>(result->buffer), &done));
    if (done) return {};
  }
  return AccumulateMessages(access, origin, result, target, op, type);
}

Error RdmaWindow::AccumulateMessages(const Access& access, const Origin& origin, const Origin* result, const Target& target,
                                     const Op& op, const ElementType& type) {
  const bool with_data = op.handle != MPI_NO_OP;
  TypeCursor here(origin.buffer, with_data ? origin.count : 0, *origin.type);
  BlockSource source(access.offset, target.count, *target.type, type, access.bytes);
  MPI_Aint position = 0;
  Reply storage;
  while (!source.done()) {
    const BlockSource::Part part = source.Next();
    uint8_t* room;
    WEFT_MPI_TRY(BeginData(access, &room));
    const DataHeader data{.op = op.handle, .basic = type.handle, .bytes = static_cast<uint32_t>(part.bytes)};
    size_t bytes = WriteDataHeader(data, part.blocks, {room, kSlotBytes - kHeaderBytes});
    if (with_data) {
      Pack(here, {room + bytes, part.bytes});
      bytes += part.bytes;
    }
    Reply* reply = ReplyFor(access, result != nullptr, &storage);
    if (result != nullptr) {
      reply->sink = {const_cast<void*>(result->buffer), result->count, Ref<const Datatype>(result->type), position, part.bytes};
    }
    const MessageKind kind = result != nullptr ? MessageKind::kGetAccumulate : MessageKind::kAccumulate;
    WEFT_MPI_TRY(SendData(access, kind, bytes, reply, !source.done()));
    position += static_cast<MPI_Aint>(part.bytes);
  }
  return {};
}

Error RdmaWindow::AccumulateHere(const Access& access, const Origin& origin, const Origin* result, const Target& target,
                                 const Op& op, const ElementType& type) {
  Peer& peer = *access.peer;
  const bool with_data = op.handle != MPI_NO_OP;
  const bool copied = IsCopied(peer);
  // One element, as of MPI_Fetch_and_op, needs no walk.
  if (!copied && access.bytes == static_cast<MPI_Aint>(type.size) && target.type->dense &&
      (!with_data || origin.type->dense) && (result == nullptr || result->type->dense)) {
    AccumulateElements(peer.guard, op.handle, type, with_data ? static_cast<const uint8_t*>(origin.buffer) : nullptr,
                       peer.local + access.offset, 1,
                       result == nullptr ? nullptr : static_cast<uint8_t*>(const_cast<void*>(result->buffer)));
    return {};
  }
  if (copied) {
    WEFT_MPI_TRY(BeforeCopy(peer));
    if (result == nullptr && MayDefer(peer, target, access.bytes, /*accumulates=*/true)) return Defer(access, origin, target, &op, type);
    WEFT_MPI_TRY(CarryOutParcel(peer));
  }
  TypeCursor here(origin.buffer, with_data ? origin.count : 0, *origin.type);
  static const Origin kNoResult{nullptr, 0, Datatype::Find(MPI_BYTE)};
  const Origin& into = result == nullptr ? kNoResult : *result;
  TypeCursor back(into.buffer, into.count, *into.type);
  const uint64_t base = copied ? peer.base : reinterpret_cast<uint64_t>(peer.local);
  BlockSource source(base + access.offset, target.count, *target.type, type, access.bytes);
  // What the program has beside the window may not be there, and is not touched with a lock held.
  uint8_t packed[DataRoom(1)], fetched[DataRoom(1)];
  while (!source.done()) {
    const BlockSource::Part part = source.Next();
    if (with_data) Pack(here, {packed, part.bytes});
    const uint8_t* given = with_data ? packed : nullptr;
    uint8_t* before = result != nullptr ? fetched : nullptr;
    if (copied) {
      WEFT_MPI_TRY(CopyError(peer, AccumulateInProcess(*peer.private_memory, peer.guard, op.handle, type, part, given, before)));
    } else {
      AccumulateBlocks(peer.guard, op.handle, type, part, given, before);
    }
    if (result != nullptr) Unpack(back, {fetched, part.bytes});
  }
  return {};
}

Error RdmaWindow::CompareAndSwap(const void* origin, const void* compare, void* result, const Datatype& type,
                                 const Target& target) {
  if (!Comparable(type.handle)) {
    return Error(MPI_ERR_TYPE, "compare and swap is for integers, logical types and MPI_BYTE, not for " + Name(type.handle));
  }
  ElementType element;
  FindElementType(type.handle, &element);
  Access access;
  WEFT_MPI_TRY(BeginAccess(target, type.size, false, &access));
  if (access.peer == nullptr) return {};
  if (access.link == nullptr) {
    Peer& peer = *access.peer;
    const auto* expected = static_cast<const uint8_t*>(compare);
    const auto* given = static_cast<const uint8_t*>(origin);
    auto* before = static_cast<uint8_t*>(result);
    if (!IsCopied(peer)) {
      CompareAndSwapElement(peer.guard, element, expected, given, peer.local + access.offset, before);
      return {};
    }
    WEFT_MPI_TRY(BeforeCopy(peer));
    WEFT_MPI_TRY(CarryOutParcel(peer));
    return CopyError(peer, CompareAndSwapInProcess(*peer.private_memory, peer.guard, element, expected, given, peer.base + access.offset, before));
  }
  if (MayBeAtomic(access, target, element)) {
    RdmaAtomic swap{.swaps = true};
    std::memcpy(&swap.operand, compare, sizeof swap.operand);
    std::memcpy(&swap.swap, origin, sizeof swap.swap);
    bool done;
    WEFT_MPI_TRY(PostAtomic(access, swap, result, &done));
    if (done) return {};
  }
  uint8_t* room;
  WEFT_MPI_TRY(BeginData(access, &room));
  const CompareAndSwapMessage message{access.offset,
                                      element.handle,
                                      {static_cast<const uint8_t*>(origin), element.size},
                                      {static_cast<const uint8_t*>(compare), element.size}};
  const size_t bytes = WriteCompareAndSwap(message, {room, kSlotBytes - kHeaderBytes});
  Reply reply;
  ReplyFor(access, true, &reply);
  reply.sink = {result, 1, Ref<const Datatype>(&type), 0, element.size};
  return SendData(access, MessageKind::kCompareAndSwap, bytes, &reply, false);
}

}  // namespace weft::mpi::rma
