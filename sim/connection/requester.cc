#include "sim/connection/requester.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "base/program_memory.h"
#include "faults/injector.h"
#include "sim/queues/names.h"

namespace weft::sim {
namespace {

ibv_wc_opcode CompletionOpcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    default:
      return IBV_WC_SEND;
  }
}

SendEntry& EntryOf(rdmap::Request& request) {
  static_assert(std::is_standard_layout_v<SendEntry> && offsetof(SendEntry, request) == 0);
  return reinterpret_cast<SendEntry&>(request);
}

// The peer answers it with more than an acknowledgement.
bool IsAnswered(const SendEntry& entry) {
  return entry.request.opcode == rdmap::Opcode::kReadRequest || entry.request.opcode == rdmap::Opcode::kAtomicRequest;
}

const char* LocalErrorText(const SendEntry& entry) {
  switch (entry.status) {
    case IBV_WC_MW_BIND_ERR:
      if (entry.opcode == IBV_WR_LOCAL_INV) {
        return "the key to invalidate is neither that of a region without windows nor that of a type 2 window bound by this queue pair";
      }
      return "the memory window is already bound or belongs to another protection domain, or the range is not in a region with "
             "IBV_ACCESS_MW_BIND and the rights asked for";
    case IBV_WC_LOC_QP_OP_ERR:
      if (entry.opcode == IBV_WR_RDMA_READ) return "the connection allows no RDMA Read (ORD is 0)";
      return entry.request.has_immediate ? "the connection is plain iWARP, which has no immediate data: the peer is not a Weft with the roce "
                                           "persona, or one end has cleared WEFT_ECE_INFINIBAND_SEMANTICS"
                                         : "the connection allows no RDMA Read (ORD is 0), or the peer, which is not a Weft with the roce persona, has no atomics";
    default:
      return "a fault was injected";
  }
}

}  // namespace

ibv_wc_status BlameFor(const rdmap::TerminateMessage& terminate) {
  constexpr uint8_t kRdmapProtection = 1, kDdpTagged = 1, kDdpUntagged = 2, kDdpInvalidQueue = 1, kDdpMessageTooLong = 5;
  switch (terminate.layer) {
    case rdmap::TerminateLayer::kRdmap:
      return terminate.error_type == kRdmapProtection ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_OP_ERR;
    case rdmap::TerminateLayer::kDdp:
      if (terminate.error_type == kDdpTagged) return IBV_WC_REM_ACCESS_ERR;
      if (terminate.error_type == kDdpUntagged && terminate.error_code == kDdpMessageTooLong) return IBV_WC_REM_INV_REQ_ERR;
      if (terminate.error_type == kDdpUntagged && terminate.error_code == kDdpInvalidQueue) return IBV_WC_REM_INV_REQ_ERR;  // XRC's
      return IBV_WC_REM_OP_ERR;
    case rdmap::TerminateLayer::kLlp:
      return IBV_WC_REM_OP_ERR;
  }
  return IBV_WC_REM_OP_ERR;
}

Requester::Requester(MemoryTable& memory, const QueuePairOptions& options, const MemoryUser& user, bool roce, Completer& completer)
    : memory_(memory),
      options_(options),
      user_(user),
      roce_(roce),
      completer_(completer),
      recent_(memory, user),
      sends_(options_.capabilities.max_send_wr, options_.capabilities.max_send_sge, options_.capabilities.max_inline_data) {}

rdmap::Request* Requester::Next(const Terms& terms, uint64_t limit, const transport::SocketAddress& peer) {
  for (;;) {
    const uint64_t count = sends_.started;
    if (failed_ || revocation_ || count >= limit || count == sends_.posted()) return nullptr;
    SendEntry& entry = sends_.entry(count);
    if ((faults::Enabled(faults::Kind::kCompletion) || entry.asked) && InjectStatus(entry, peer)) [[unlikely]] {
      failed_ = sends_.retired() == count;
      return nullptr;
    }
    if (entry.opcode == IBV_WR_LOCAL_INV || entry.opcode == IBV_WR_BIND_MW) {
      if (entry.done || (entry.opcode == IBV_WR_BIND_MW ? BindWindow(count) : InvalidateLocally(count))) {
        ++sends_.started;
        Retire();
        continue;
      }
    } else if ((entry.resolved && !(entry.request.has_immediate && !terms.extended)) || Resolve(count, terms)) {
      if (entry.opcode == IBV_WR_RDMA_READ) entry.request.alone = IsAlone(count);
      return &entry.request;
    }
    // It fails when everything before it is complete, so that completions stay in order.
    failed_ = sends_.retired() == count && entry.status != IBV_WC_SUCCESS;
    return nullptr;
  }
}

// A program that has more under way, or has not looked at what is done, does not wait for this one; nor does who is not told of it.
bool Requester::IsAlone(uint64_t count) const {
  return sends_.entry(count).signaled && sends_.retired() == count && sends_.posted() == count + 1 && options_.send_cq->empty();
}

bool Requester::Resolve(uint64_t count, const Terms& terms) {
  SendEntry& entry = sends_.entry(count);
  const bool is_atomic = entry.request.opcode == rdmap::Opcode::kAtomicRequest && entry.opcode != IBV_WR_LOCAL_INV;
  const bool is_read = entry.opcode == IBV_WR_RDMA_READ || is_atomic;
  if ((is_read && !terms.reads) || (is_atomic && !terms.atomics) || (entry.request.has_immediate && !terms.extended)) {
    entry.status = IBV_WC_LOC_QP_OP_ERR;
    return false;
  }
  iovec* memory = sends_.memory(count);
  size_t pieces = 0;
  for (int i = 0; i < entry.pieces; ++i) {
    const ibv_sge& element = sends_.elements(count)[i];
    if (is_read && i == 0) {
      entry.request.sink_stag = ddp::STag(element.lkey);
      entry.request.sink_offset = ddp::TaggedOffset(element.addr);
    }
    if (element.length == 0) continue;
    uint8_t* bytes = recent_.Resolve(*options_.pd, element.lkey, element.addr, element.length, is_read, is_read && !roce_);
    if (bytes == nullptr) {
      entry.status = IBV_WC_LOC_PROT_ERR;
      return false;
    }
    memory[pieces++] = {bytes, element.length};
  }
  // On the program's own thread it is the program that names memory which is not there.
  if (ThreadOfOurs() && !IsProgramMemory({memory, pieces})) {
    entry.status = IBV_WC_LOC_PROT_ERR;
    return false;
  }
  entry.request.local = {memory, pieces};
  entry.resolved = true;
  return true;
}

void Requester::TraceBegin() const {
  const SendEntry& entry = sends_.entry(sends_.started);
  Trace(Format("qp 0x%x: work request %llu begins: %s, %u bytes", completer_.number(), static_cast<unsigned long long>(entry.id),
               NameOf(entry.opcode), entry.request.length));
}

void Requester::Done(rdmap::Request& request) {
  EntryOf(request).done = true;
  Retire();
}

void Requester::Retire() {
  while (sends_.retired() != sends_.started) {
    SendEntry& entry = oldest();
    if (!entry.done) return;
    Complete(entry);
  }
}

void Requester::Complete(SendEntry& entry) {
  const bool tell = entry.signaled;
  ibv_wc completion;
  if (tell) {
    completion = ibv_wc{};
    completion.wr_id = entry.id;
    completion.status = entry.status;
    completion.opcode = CompletionOpcode(entry.opcode);
    completion.byte_len = entry.request.length;
    completion.qp_num = completer_.number();
  }
  sends_.Retire();  // its slot is free before the program can see the completion
  if (tell) completer_.Push(*options_.send_cq, completion, false);
}

uint64_t Requester::Rewind(uint64_t count) {
  const uint64_t begun = sends_.started - count;
  sends_.started = count;
  return begun;
}

void Requester::Flush(std::optional<ibv_wc_status> blame, std::optional<uint64_t> at) {
  sends_.AwaitProducers();
  const uint64_t blamed = at.value_or(sends_.retired());
  while (!empty()) {
    SendEntry& entry = oldest();
    entry.status = sends_.retired() == blamed ? blame.value_or(IBV_WC_WR_FLUSH_ERR) : IBV_WC_WR_FLUSH_ERR;
    entry.signaled = true;
    Complete(entry);
  }
  sends_.started = sends_.retired();
}

void Requester::CompleteAll() {
  for (; !empty(); sends_.started = sends_.retired()) Complete(oldest());
}

void Requester::Clear() {
  sends_.Clear();
  failed_ = false;
}

std::string Requester::Explain() const {
  const uint64_t count = sends_.retired();
  const SendEntry& entry = sends_.entry(count);
  if (entry.status != IBV_WC_LOC_PROT_ERR) return LocalErrorText(entry);
  const bool write = entry.opcode == IBV_WR_RDMA_READ || entry.request.opcode == rdmap::Opcode::kAtomicRequest;
  for (int i = 0; i < entry.pieces; ++i) {
    const ibv_sge& element = sends_.elements(count)[i];
    if (element.length == 0) continue;
    const std::string why = memory_.ExplainLocal(*options_.pd, element.lkey, element.addr, element.length, write, write && !roce_);
    if (why.empty()) continue;
    return Format("scatter/gather element %d (lkey 0x%08x, address 0x%llx, %u bytes): %s", i, element.lkey,
                  static_cast<unsigned long long>(element.addr), element.length, why.c_str());
  }
  return "the memory is not mapped any more, or was registered since, or a fault was injected";
}

uint64_t Requester::CountOf(const rdmap::Request& request) const {
  uint64_t count = sends_.retired();
  while (count != sends_.started && &sends_.entry(count).request != &request) ++count;
  return count;
}

uint64_t Requester::BlamedBy(const rdmap::TerminateMessage& terminate, uint32_t next) const {
  // A frame that was damaged may have been any of them.
  if (terminate.layer == rdmap::TerminateLayer::kLlp) return sends_.retired();
  for (uint64_t count = sends_.retired(); count != sends_.started; ++count) {
    const SendEntry& entry = sends_.entry(count);
    if (entry.done) continue;
    if (terminate.has_read_header ? IsAnswered(entry) : entry.request.sequence == next) return count;
  }
  return sends_.retired();
}

ibv_wc_status Requester::BlameFor(const rdmap::TerminateMessage& terminate, uint64_t blamed) const {
  constexpr uint8_t kOperation = 2, kCatastrophic = 7;
  // RFC 7306 section 8.2: the address of an atomic is not aligned.
  if (terminate.layer == rdmap::TerminateLayer::kRdmap && terminate.error_type == kOperation && terminate.error_code == kCatastrophic &&
      blamed != sends_.posted() && sends_.entry(blamed).request.opcode == rdmap::Opcode::kAtomicRequest) {
    return IBV_WC_REM_INV_REQ_ERR;
  }
  return sim::BlameFor(terminate);
}

void Requester::AcceptUpTo(uint32_t received) {
  for (uint64_t count = sends_.retired(); count != sends_.started; ++count) {
    SendEntry& entry = sends_.entry(count);
    if (!IsAnswered(entry) && static_cast<int32_t>(entry.request.sequence - received) <= 0) entry.done = true;
  }
  Retire();
}

std::optional<uint64_t> Requester::OldestWithPayload() const {
  for (uint64_t count = sends_.retired(); count != sends_.started; ++count) {
    const SendEntry& entry = sends_.entry(count);
    if (!entry.done && !IsAnswered(entry) && entry.request.length != 0) return count;
  }
  return std::nullopt;
}

// In the order of the queue, but without waiting for what was posted before, unless the program asks for a fence:
// requests under way were checked when they began.
bool Requester::BindWindow(uint64_t count) {
  SendEntry& entry = sends_.entry(count);
  if (entry.request.fence && sends_.retired() != count) return false;
  RegionInfo gone;
  if (!memory_.BindWindow(*options_.pd, user_.owner, sends_.bind(count), &gone)) {
    entry.status = IBV_WC_MW_BIND_ERR;
    return false;
  }
  entry.status = IBV_WC_SUCCESS;
  if (gone.length != 0) {
    RevokeLater(count, gone);
    return false;
  }
  entry.done = true;
  return true;
}

bool Requester::InvalidateLocally(uint64_t count) {
  if (sends_.retired() != count) return false;  // after all that was posted before it
  SendEntry& entry = sends_.entry(count);
  RegionInfo gone;
  if (!memory_.Invalidate(*options_.pd, entry.request.invalidate_stag, user_.owner, &gone)) {
    entry.status = IBV_WC_MW_BIND_ERR;  // which is the specification's Memory Management Operation Error
    return false;
  }
  RevokeLater(count, gone);
  return false;
}

void Requester::RevokeLater(uint64_t count, const RegionInfo& gone) {
  revocation_ = {.count = count, .gone = gone};
  revocation_begun_ = false;
}

Requester::Revocation Requester::BeginRevocation() {
  revocation_begun_ = true;
  return *revocation_;
}

void Requester::EndRevocation(const Revocation& revocation) {
  if (revocation_ && revocation_->count == revocation.count) revocation_.reset();
}

void Requester::DoneRevoking(uint64_t count) {
  if (sends_.retired() > count) return;
  sends_.entry(count).done = true;
  if (sends_.started == count) ++sends_.started;
  Retire();
}

std::optional<uint64_t> Requester::ForgetRegion(const RegionInfo& gone) {
  const auto names = [&](uint64_t count) {
    const SendEntry& entry = sends_.entry(count);
    return !entry.is_inline && NamesRegion(sends_.elements(count), entry.pieces, gone);
  };
  // What waits for its turn looks its memory up again then.
  for (uint64_t count = sends_.started; count != sends_.posted(); ++count) {
    if (names(count)) sends_.entry(count).resolved = false;
  }
  for (uint64_t count = sends_.retired(); count != sends_.started; ++count) {
    if (!sends_.entry(count).done && names(count)) return count;
  }
  return std::nullopt;
}

// Asked once for each: whether a fault says that this request is not carried out; its status is in the entry.
bool Requester::InjectStatus(SendEntry& entry, const transport::SocketAddress& peer) {
  if (std::exchange(entry.asked, true)) return entry.status != IBV_WC_SUCCESS;
  const auto fault = faults::Injector::Process().Ask(
      faults::Kind::kCompletion,
      {.qp = completer_.number(), .peer = &peer, .opcode = static_cast<int>(entry.opcode), .device = options_.device.c_str()},
      Format("qp 0x%x, peer %s: work request %llu (%s) completes with an error", completer_.number(), peer.ToString().c_str(),
             static_cast<unsigned long long>(entry.id),
             faults::NameIn(faults::OpcodeWords(), static_cast<int>(entry.opcode)).c_str()));
  if (!fault) return false;
  entry.status = static_cast<ibv_wc_status>(fault->status);
  return true;
}

}  // namespace weft::sim
