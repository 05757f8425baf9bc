#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "mpi_hybrid/datatype/predefined.h"
#include "mpi_hybrid/rma/rdma_window.h"
#include "mpi_hybrid/rma/service.h"

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
  if (basic == nullptr) return false;
  switch (basic->kind) {
    case BasicKind::kByte:
    case BasicKind::kSigned:
    case BasicKind::kUnsigned:
    case BasicKind::kWide:
    case BasicKind::kLogical:
      return basic->size <= 16 && basic->size > 0;
    default:
      return false;
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
  if (op.handle == MPI_NO_OP) return {};  // its origin does not matter
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
    FinishedRequest(request);
    return access.peer == nullptr ? Error() : AccumulateHere(access, origin, nullptr, target, op, type);
  }
  access.waits = request == nullptr;
  if (request == nullptr) return AccumulateMessages(access, origin, nullptr, target, op, type);
  access.request = new RmaRequest;
  access.request->AddRef();
  Error error = AccumulateMessages(access, origin, nullptr, target, op, type);
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
    FinishedRequest(request);
    return access.peer == nullptr ? Error() : AccumulateHere(access, origin, &result, target, op, type);
  }
  access.waits = request == nullptr && epochs_.in_fence();
  if (request == nullptr) return AccumulateMessages(access, origin, &result, target, op, type);
  access.request = new RmaRequest;
  access.request->AddRef();
  Error error = AccumulateMessages(access, origin, &result, target, op, type);
  access.request->PartDone(error);
  *request = access.request;
  return {};
}

Error RdmaWindow::FetchAndOp(const void* origin, void* result, const Datatype& type, const Target& target, const Op& op) {
  return GetAccumulate({origin, 1, &type}, {result, 1, &type}, target, op, nullptr);
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
  const bool with_data = op.handle != MPI_NO_OP;
  TypeCursor here(origin.buffer, with_data ? origin.count : 0, *origin.type);
  static const Origin kNoResult{nullptr, 0, Datatype::Find(MPI_BYTE)};
  const Origin& into = result == nullptr ? kNoResult : *result;
  TypeCursor back(into.buffer, into.count, *into.type);
  BlockSource source(reinterpret_cast<uint64_t>(access.peer->local) + access.offset, target.count, *target.type, type,
                     access.bytes);
  uint8_t packed[DataRoom(1)];
  while (!source.done()) {
    const BlockSource::Part part = source.Next();
    // What the program reads and writes beside the window is not touched under the service's lock, in which a fault would be
    // fatal twice.
    uint8_t fetched[DataRoom(1)];
    if (with_data) Pack(here, {packed, part.bytes});
    {
      std::lock_guard service(device_->service().mutex());
      AccumulateLock lock(own_.accumulate_mutex);
      size_t done = 0;
      for (const Block& block : part.blocks) {
        uint64_t address = block.offset;
        for (uint32_t i = 0; i < block.count; ++i, address += static_cast<uint64_t>(block.stride), done += block.bytes) {
          auto* memory = reinterpret_cast<uint8_t*>(address);
          if (result != nullptr) FetchElements(type, memory, block.bytes / type.size, fetched + done);
          if (with_data) Op::ApplyBasic(op.handle, type.handle, packed + done, memory, block.bytes / type.size);
        }
      }
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
    std::lock_guard service(device_->service().mutex());
    AccumulateLock lock(own_.accumulate_mutex);
    uint8_t* memory = access.peer->local + access.offset;
    const bool equal = std::memcmp(memory, compare, element.size) == 0;
    std::memcpy(result, memory, element.size);
    if (equal) std::memcpy(memory, origin, element.size);
    return {};
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
