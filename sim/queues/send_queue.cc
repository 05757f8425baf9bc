#include "sim/queues/send_queue.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>

#include "sim/device/limits.h"

namespace weft::sim {
namespace {

// Which verbs opcodes become which messages; no entry: this RNIC does not have the operation. `extended`: those that only extended
// streams carry.
bool ToRequestOpcode(ibv_wr_opcode opcode, bool solicited, bool extended, rdmap::Opcode* out) {
  switch (opcode) {
    case IBV_WR_SEND:
      *out = solicited ? rdmap::Opcode::kSendSolicited : rdmap::Opcode::kSend;
      return true;
    case IBV_WR_SEND_WITH_INV:
      *out = solicited ? rdmap::Opcode::kSendSolicitedInvalidate : rdmap::Opcode::kSendInvalidate;
      return true;
    case IBV_WR_RDMA_WRITE:
      *out = rdmap::Opcode::kWrite;
      return true;
    case IBV_WR_RDMA_READ:
      *out = rdmap::Opcode::kReadRequest;
      return true;
    case IBV_WR_SEND_WITH_IMM:
      *out = solicited ? rdmap::Opcode::kSendSolicited : rdmap::Opcode::kSend;
      return extended;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      *out = rdmap::Opcode::kWrite;
      return extended;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      *out = rdmap::Opcode::kAtomicRequest;
      return extended;
    case IBV_WR_LOCAL_INV:
    case IBV_WR_BIND_MW:
      return true;
    default:
      return false;
  }
}

constexpr unsigned kKnownFlags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;
constexpr unsigned kWindowAccess = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;
constexpr uint32_t kKeyPart = 0xff;  // of an rkey: only that is the program's to choose (IBTA volume 1 section 10.6.7.2.2)
constexpr unsigned kOtherAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;  // programs ask for it, windows have no use for it

// The rest is found out when its turn comes, and is a completion then. 0 or EINVAL. The public structure gets the new key at once, as irdma does:
// a program that gave eight bits finds the whole key there, as it does after ibv_bind_mw(3).
int ReadBind(const ibv_send_wr& wr, WindowBind* out) {
  ibv_mw* window = wr.bind_mw.mw;
  const ibv_mw_bind_info& info = wr.bind_mw.bind_info;
  if (window == nullptr || window->type != IBV_MW_TYPE_2) return EINVAL;
  if (info.mr == nullptr && (info.addr != 0 || info.length != 0)) return EINVAL;
  if (info.mw_access_flags & ~(kWindowAccess | kOtherAccess)) return EINVAL;
  *out = {.window = ddp::STag((window->rkey & ~kKeyPart) | (wr.bind_mw.rkey & kKeyPart)),
          .region = ddp::STag(info.mr == nullptr ? 0 : info.mr->lkey),
          .address = info.addr,
          .length = info.length,
          .access = static_cast<int>(info.mw_access_flags & kWindowAccess)};
  window->rkey = out->window.value;
  return 0;
}

}  // namespace

SendQueue::SendQueue(uint32_t depth, uint32_t max_sge, uint32_t max_inline)
    : depth_(depth),
      max_sge_(max_sge),
      max_inline_(max_inline),
      entries_(new SendEntry[depth]),
      elements_(new ibv_sge[size_t{depth} * max_sge]),
      memory_(new iovec[size_t{depth} * max_sge]),
      inline_(new uint8_t[size_t{depth} * max_inline]) {}  // not touched until used: costs no memory while it is idle

int SendQueue::Stage(const ibv_send_wr& wr, bool signal_all, bool extended, uint32_t staged) {
  rdmap::Opcode opcode{};
  if (!ToRequestOpcode(wr.opcode, wr.send_flags & IBV_SEND_SOLICITED, extended, &opcode)) return EOPNOTSUPP;
  if (wr.send_flags & ~kKnownFlags) return EINVAL;
  const bool is_atomic = opcode == rdmap::Opcode::kAtomicRequest;
  const bool is_read = wr.opcode == IBV_WR_RDMA_READ || is_atomic;
  // On the wire the sink of a Read is one tagged buffer (RFC 5040 section 4.4); only who may scatter at will has more.
  const uint32_t max_read_sge = extended ? max_sge_ : 1;
  const uint32_t pieces = wr.opcode == IBV_WR_LOCAL_INV || wr.opcode == IBV_WR_BIND_MW ? 0 : static_cast<uint32_t>(wr.num_sge);
  if (wr.num_sge < 0 || pieces > (is_read ? std::min(max_read_sge, max_sge_) : max_sge_)) return EINVAL;
  const bool is_inline = (wr.send_flags & IBV_SEND_INLINE) && pieces > 0;
  if (is_inline && is_read) return EINVAL;

  uint64_t length = 0;
  for (uint32_t i = 0; i < pieces; ++i) length += wr.sg_list[i].length;
  if (length > kMaxMessage || (is_inline && length > max_inline_)) return EINVAL;
  if (is_atomic && length != sizeof(uint64_t)) return EINVAL;

  const uint64_t count = posted_.load(std::memory_order_relaxed) + staged;
  if (count - retired_.load(std::memory_order_acquire) >= depth_) return ENOMEM;

  if (wr.opcode == IBV_WR_BIND_MW) {
    if (binds_ == nullptr) binds_.reset(new WindowBind[depth_]);
    if (int error = ReadBind(wr, &bind(count))) return error;
  }
  SendEntry& slot = entry(count);
  slot.id = wr.wr_id;
  slot.opcode = wr.opcode;
  slot.status = IBV_WC_SUCCESS;
  slot.asked = false;
  slot.signaled = signal_all || (wr.send_flags & IBV_SEND_SIGNALED);
  slot.is_inline = is_inline;
  slot.resolved = false;
  slot.done = false;
  slot.pieces = static_cast<uint8_t>(pieces);
  rdmap::Request& request = slot.request;
  request.opcode = opcode;
  request.fence = wr.send_flags & IBV_SEND_FENCE;
  request.acknowledge = slot.signaled;
  request.volatile_local = false;  // inline bytes stay in the ring until the entry is retired
  request.length = static_cast<uint32_t>(length);
  request.has_immediate = wr.opcode == IBV_WR_SEND_WITH_IMM || wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  request.write_done = false;
  if (request.has_immediate) {
    request.immediate = ntohl(wr.imm_data);
    request.solicited = wr.send_flags & IBV_SEND_SOLICITED;
  }
  if (is_atomic) {
    const bool add = wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    request.atomic_code = add ? rdmap::AtomicCode::kFetchAdd : rdmap::AtomicCode::kCompareSwap;
    request.add_or_swap = add ? wr.wr.atomic.compare_add : wr.wr.atomic.swap;
    request.compare = add ? 0 : wr.wr.atomic.compare_add;
    request.remote_stag = ddp::STag(wr.wr.atomic.rkey);
    request.remote_offset = ddp::TaggedOffset(wr.wr.atomic.remote_addr);
  } else {
    request.remote_stag = ddp::STag(wr.wr.rdma.rkey);
    request.remote_offset = ddp::TaggedOffset(wr.wr.rdma.remote_addr);
  }
  request.invalidate_stag = ddp::STag(wr.invalidate_rkey);
  if (is_inline) {
    auto* to = static_cast<uint8_t*>(inline_bytes(count));
    for (uint32_t i = 0; i < pieces; ++i) {
      if (wr.sg_list[i].length == 0) continue;
      std::memcpy(to, reinterpret_cast<const void*>(wr.sg_list[i].addr), wr.sg_list[i].length);
      to += wr.sg_list[i].length;
    }
    memory(count)[0] = {inline_bytes(count), static_cast<size_t>(length)};
    request.local = {memory(count), length > 0 ? size_t{1} : size_t{0}};
    slot.resolved = true;
  } else if (pieces > 0) {
    std::memcpy(&elements_[(count % depth_) * max_sge_], wr.sg_list, pieces * sizeof(ibv_sge));
  }
  return 0;
}

void SendQueue::Clear() {
  const uint64_t end = posted();
  started = end;
  retired_.store(end, std::memory_order_release);
}

}  // namespace weft::sim
