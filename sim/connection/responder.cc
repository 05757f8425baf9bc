#include "sim/connection/responder.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/log.h"
#include "base/program_memory.h"
#include "faults/injector.h"
#include "sim/device/limits.h"
#include "sim/memory/atomics.h"

namespace weft::sim {
namespace {

constexpr uint32_t kMostTaken = 4;  // receives of a shared queue that messages are coming in for

}  // namespace

Responder::Responder(MemoryTable& memory, const QueuePairOptions& options, const MemoryUser& user, Completer& completer)
    : memory_(memory),
      options_(options),
      user_(user),
      completer_(completer),
      recent_(memory, user),
      receives_(options_.shared_receives || options_.xrc ? kMostTaken : options_.capabilities.max_recv_wr,
                options_.xrc                ? kMaxSge
                : options_.shared_receives ? options_.shared_receives->max_sge()
                                           : options_.capabilities.max_recv_sge) {}

Result<uint8_t*, rdmap::AccessError> Responder::Resolve(ddp::STag stag, ddp::TaggedOffset offset, uint32_t length, rdmap::Access access,
                                                        int rights) {
  int needed = 0;
  switch (access) {
    case rdmap::Access::kRemoteWrite:
    case rdmap::Access::kReadSink:  // on iWARP the sink of a Read is written by the peer (RFC 5040 section 5.1)
      needed = IBV_ACCESS_REMOTE_WRITE;
      break;
    case rdmap::Access::kRemoteRead:
      needed = IBV_ACCESS_REMOTE_READ;
      break;
  }
  if (options_.type == IBV_QPT_XRC_SEND) return rdmap::AccessError::kAccessRights;  // it takes no requests
  const int open = access == rdmap::Access::kReadSink ? needed : rights;
  if ((open & needed) != needed) return rdmap::AccessError::kAccessRights;
  ddp::STag region;
  auto memory = memory_.ResolveRemote(remote_pd(), stag, offset.value, length, needed, user_, &region);
  if (region != stag) window_uses_[access == rdmap::Access::kRemoteRead] = {stag, region};
  return memory;
}

std::optional<llp::TaggedBuffer> Responder::OpenBuffer(ddp::STag stag, int rights) {
  if (options_.type == IBV_QPT_XRC_SEND) return std::nullopt;
  const auto region = memory_.FindOpen(remote_pd(), stag, user_);
  if (!region) return std::nullopt;
  const int open = rights & region->access;
  if (!(open & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ))) return std::nullopt;
  return llp::TaggedBuffer{.tag = stag.value,
                           .offset = region->offset,
                           .memory = reinterpret_cast<uint8_t*>(region->address),
                           .length = region->length,
                           .writable = (open & IBV_ACCESS_REMOTE_WRITE) != 0,
                           .readable = (open & IBV_ACCESS_REMOTE_READ) != 0};
}

Result<uint64_t, rdmap::AccessError> Responder::Atomic(ddp::STag stag, ddp::TaggedOffset offset, const rdmap::AtomicOperation& operation,
                                                       int rights) {
  if ((rights & IBV_ACCESS_REMOTE_ATOMIC) == 0) return rdmap::AccessError::kAccessRights;
  const auto memory = memory_.ResolveRemote(remote_pd(), stag, offset.value, sizeof(uint64_t), IBV_ACCESS_REMOTE_ATOMIC, user_);
  if (!memory) return memory.error();
  if (reinterpret_cast<uintptr_t>(*memory) % sizeof(uint64_t) != 0) return rdmap::AccessError::kMisaligned;
  const iovec piece{*memory, sizeof(uint64_t)};
  if (ThreadOfOurs() && !IsProgramMemory({&piece, 1})) return rdmap::AccessError::kBounds;
  return CarryOut(operation, reinterpret_cast<uint64_t*>(*memory));
}

std::optional<rdmap::AccessError> Responder::Invalidate(ddp::STag stag, RegionInfo* gone) {
  return memory_.InvalidateForPeer(remote_pd(), stag, user_.owner, gone);
}

std::optional<rdmap::ReceiveTarget> Responder::TakeReceive(uint64_t needed, const transport::SocketAddress& peer) {
  exhausted_ = (faults::Enabled(faults::Kind::kRnr) && InjectNotReady(peer)) || (receives_.taken == receives_.posted() && !TakeShared());
  if (exhausted_) return std::nullopt;
  const uint64_t count = receives_.taken++;
  if (faults::Enabled(faults::Kind::kCompletion)) [[unlikely]] {
    if (const ibv_wc_status status = InjectStatus(peer); status != IBV_WC_SUCCESS) {
      Fail(status);
      return std::nullopt;
    }
  }
  const ReceiveQueue::Entry& entry = receives_.entry(count);
  iovec* memory = receives_.memory();
  size_t pieces = 0;
  uint64_t length = 0;
  for (int i = 0; i < entry.pieces; ++i) {
    const ibv_sge& element = receives_.elements(count)[i];
    if (element.length == 0) continue;
    memory[pieces++] = {nullptr, element.length};
    length += element.length;
  }
  filling_ = {};
  needed = std::min(needed, length);
  if (ExtendReceive(needed) < needed) return std::nullopt;
  return rdmap::ReceiveTarget{{memory, pieces}, length, filling_.usable};
}

uint64_t Responder::ExtendReceive(uint64_t needed) {
  const uint64_t count = receives_.completed();
  const ReceiveQueue::Entry& entry = receives_.entry(count);
  while (filling_.usable < needed) {
    const ibv_sge& element = receives_.elements(count)[filling_.element];
    if (element.length == 0) {
      ++filling_.element;
      continue;
    }
    uint32_t good = element.length;
    uint8_t* bytes = recent_.Resolve(receive_pd(), element.lkey, element.addr, good, true, false);
    if (bytes == nullptr) {  // the bytes that are needed may lie in the region all the same
      good = static_cast<uint32_t>(std::min<uint64_t>(needed - filling_.before, element.length));
      bytes = recent_.Resolve(receive_pd(), element.lkey, element.addr, good, true, false);
    }
    if (bytes == nullptr) {
      LogWarning(Format("qp 0x%x: receive %llu names memory (lkey 0x%08x, address 0x%llx, %u bytes) that it cannot use: %s",
                        completer_.number(), static_cast<unsigned long long>(entry.id), element.lkey,
                        static_cast<unsigned long long>(element.addr), element.length,
                        memory_.ExplainLocal(receive_pd(), element.lkey, element.addr, element.length, true, false).c_str()));
      Fail(IBV_WC_LOC_PROT_ERR);
      return filling_.usable;
    }
    receives_.memory()[filling_.piece].iov_base = bytes;
    filling_.usable = filling_.before + good;
    if (good != element.length) continue;
    filling_.before = filling_.usable;
    ++filling_.element;
    ++filling_.piece;
  }
  return filling_.usable;
}

bool Responder::TakeShared() {
  SharedReceiveQueue* const from = options_.xrc ? target_.get() : options_.shared_receives.get();
  if (from == nullptr) return false;
  ibv_recv_wr wr;
  ibv_sge elements[kMaxSge];
  if (!from->Take(&wr, elements) || receives_.Post(wr) != 0) return false;
  if (options_.xrc) receiving_ = target_;
  return true;
}

void Responder::Complete(ibv_wc_status status, const rdmap::ReceivedSend* message) {
  ibv_wc completion{};
  completion.wr_id = receives_.entry(receives_.completed()).id;
  completion.status = status;
  completion.opcode = IBV_WC_RECV;
  completion.qp_num = completer_.number();
  bool solicited = true;
  if (message != nullptr) {
    completion.byte_len = message->length;
    if (message->of_write) completion.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    if (message->immediate) {
      completion.wc_flags = IBV_WC_WITH_IMM;
      completion.imm_data = htonl(*message->immediate);
    }
    solicited = message->solicited;
    if (message->invalidated) {
      completion.wc_flags = IBV_WC_WITH_INV;
      completion.invalidated_rkey = message->invalidated->value;
    }
  }
  receives_.Complete();
  completer_.Push(receiving_ != nullptr ? *receiving_->completions() : *options_.receive_cq, completion, solicited);
}

void Responder::FailNext(ibv_wc_status status) {
  if (filling() || (receives_.taken == receives_.posted() && !TakeShared())) return;
  ++receives_.taken;
  Fail(status);
}

void Responder::Flush() {
  receives_.AwaitProducers();
  while (receives_.completed() != receives_.posted()) {
    if (!filling()) ++receives_.taken;
    Fail(IBV_WC_WR_FLUSH_ERR);
  }
}

bool Responder::SelectTarget(uint32_t number) {
  target_ = options_.xrc != nullptr ? options_.xrc->Find(number) : nullptr;
  return target_ != nullptr;
}

void Responder::ForgetTargets() {
  target_.reset();
  receiving_.reset();
}

bool Responder::IsFilling(const RegionInfo& region) const {
  if (!filling()) return false;
  const int looked_up = filling_.element + (filling_.usable > filling_.before ? 1 : 0);
  return NamesRegion(receives_.elements(receives_.completed()), static_cast<unsigned>(looked_up), region);
}

std::array<ddp::STag, 2> Responder::WindowsOf(const RegionInfo& region) const {
  std::array<ddp::STag, 2> windows{};
  for (size_t i = 0; i < windows.size(); ++i) {
    if (window_uses_[i].region == region.stag) windows[i] = window_uses_[i].window;
  }
  return windows;
}

bool Responder::InjectNotReady(const transport::SocketAddress& peer) {
  return faults::Injector::Process()
      .Ask(faults::Kind::kRnr, {.qp = completer_.number(), .peer = &peer, .device = options_.device.c_str()},
           Format("qp 0x%x, peer %s: as if no receive were posted", completer_.number(), peer.ToString().c_str()))
      .has_value();
}

// The status with which a fault says that the receive that was just taken completes; success: none does.
ibv_wc_status Responder::InjectStatus(const transport::SocketAddress& peer) {
  const auto fault = faults::Injector::Process().Ask(
      faults::Kind::kCompletion,
      {.qp = completer_.number(), .peer = &peer, .opcode = faults::kReceiveOpcode, .device = options_.device.c_str()},
      Format("qp 0x%x, peer %s: a receive completes with an error", completer_.number(), peer.ToString().c_str()));
  return fault ? static_cast<ibv_wc_status>(fault->status) : IBV_WC_SUCCESS;
}

}  // namespace weft::sim
