#include "verbs/send_batch.h"

#include <cerrno>
#include <memory>

#include "sim/device/device.h"
#include "verbs/objects.h"

// The ibv_wr_* family, which programs reach through function pointers in the queue pair.
namespace weft::verbs {

void SendBatch::Reset() {
  error_ = 0;
  entries_.clear();
  sges_.clear();
  inline_.clear();
}

void SendBatch::Start() {
  mutex_.lock();
  Reset();
}

void SendBatch::Inject(const ibv_qp& qp) {
  if (error_ == 0 && !entries_.empty()) error_ = Fault(faults::Call::kPostSend, &qp, static_cast<int>(entries_.front().wr.opcode));
}

int SendBatch::Complete(sim::AnyQueuePair& engine) {
  int error = error_;
  if (error == 0 && !entries_.empty()) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      Entry& entry = entries_[i];
      entry.wr.sg_list = sges_.data() + entry.first_sge;
      if (entry.is_inline && entry.wr.num_sge > 0) {
        entry.wr.sg_list->addr = reinterpret_cast<uintptr_t>(inline_.data() + entry.wr.sg_list->addr);
      }
      entry.wr.next = i + 1 < entries_.size() ? &entries_[i + 1].wr : nullptr;
    }
    ibv_send_wr* bad = nullptr;
    error = engine.PostSend(&entries_.front().wr, &bad, /*all_or_nothing=*/true);
  }
  mutex_.unlock();
  return error;
}

void SendBatch::Abort() { mutex_.unlock(); }

ibv_send_wr& SendBatch::Add(uint64_t wr_id, unsigned int flags, ibv_wr_opcode opcode) {
  Entry& entry = entries_.emplace_back();
  entry.wr.wr_id = wr_id;
  entry.wr.send_flags = flags & ~static_cast<unsigned int>(IBV_SEND_INLINE);  // the setters say whether it is inline
  entry.wr.opcode = opcode;
  entry.first_sge = sges_.size();
  return entry.wr;
}

void SendBatch::SetSges(const ibv_sge* sges, size_t count) {
  if (entries_.empty() || count > sim::kMaxSge) return Refuse(EINVAL);
  Entry& entry = entries_.back();
  sges_.resize(entry.first_sge);
  sges_.insert(sges_.end(), sges, sges + count);
  entry.wr.num_sge = static_cast<int>(count);
}

void SendBatch::SetInline(const ibv_data_buf* buffers, size_t count) {
  if (entries_.empty()) return Refuse(EINVAL);
  const size_t first = inline_.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t length = inline_.size() - first;
    if (buffers[i].length > sim::kMaxInline - length) return Refuse(EINVAL);
    const auto* bytes = static_cast<const uint8_t*>(buffers[i].addr);
    inline_.insert(inline_.end(), bytes, bytes + buffers[i].length);
  }
  const ibv_sge sge = {first, static_cast<uint32_t>(inline_.size() - first), 0};
  SetSges(&sge, sge.length == 0 ? 0 : 1);
  entries_.back().is_inline = true;
  entries_.back().wr.send_flags |= IBV_SEND_INLINE;
}

void SendBatch::SetDatagramAddress(ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  if (entries_.empty()) return Refuse(EINVAL);
  entries_.back().wr.wr.ud = {ah, remote_qpn, remote_qkey};
}

void SendBatch::SetSharedReceiveQueue(uint32_t number) {
  if (entries_.empty()) return Refuse(EINVAL);
  entries_.back().wr.qp_type.xrc.remote_srqn = number;
}

void SendBatch::Refuse(int error) {
  if (error_ == 0) error_ = error;
}

namespace {

constexpr uint64_t kSupported = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
                                IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_BIND_MW;
constexpr uint64_t kSupportedByRoce = kSupported | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                      IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

constexpr uint64_t kSupportedUnreliable =
    kSupportedByRoce & ~(IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
constexpr uint64_t kSupportedDatagrams = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

SendBatch& BatchOf(ibv_qp_ex* qp) { return *FromPublic(qp)->batch; }

ibv_send_wr& Add(ibv_qp_ex* qp, ibv_wr_opcode opcode) { return BatchOf(qp).Add(qp->wr_id, qp->wr_flags, opcode); }

void AddRdma(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address) {
  ibv_send_wr& wr = Add(qp, opcode);
  wr.wr.rdma.remote_addr = address;
  wr.wr.rdma.rkey = rkey;
}

void WrRdmaRead(ibv_qp_ex* qp, uint32_t rkey, uint64_t address) { AddRdma(qp, IBV_WR_RDMA_READ, rkey, address); }
void WrRdmaWrite(ibv_qp_ex* qp, uint32_t rkey, uint64_t address) { AddRdma(qp, IBV_WR_RDMA_WRITE, rkey, address); }
void WrSend(ibv_qp_ex* qp) { Add(qp, IBV_WR_SEND); }
void WrSendInvalidate(ibv_qp_ex* qp, uint32_t rkey) { Add(qp, IBV_WR_SEND_WITH_INV).invalidate_rkey = rkey; }
void WrSendImmediate(ibv_qp_ex* qp, __be32 immediate) { Add(qp, IBV_WR_SEND_WITH_IMM).imm_data = immediate; }
void WrBindWindow(ibv_qp_ex* qp, ibv_mw* mw, uint32_t rkey, const ibv_mw_bind_info* info) {
  ibv_send_wr& wr = Add(qp, IBV_WR_BIND_MW);
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = rkey;
  wr.bind_mw.bind_info = *info;
}
void WrRdmaWriteImmediate(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, __be32 immediate) {
  AddRdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address);
  BatchOf(qp).Last().imm_data = immediate;
}
void AddAtomic(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address, uint64_t compare_add, uint64_t swap) {
  ibv_send_wr& wr = Add(qp, opcode);
  wr.wr.atomic.remote_addr = address;
  wr.wr.atomic.rkey = rkey;
  wr.wr.atomic.compare_add = compare_add;
  wr.wr.atomic.swap = swap;
}
void WrCompareSwap(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap) {
  AddAtomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address, compare, swap);
}
void WrFetchAdd(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, uint64_t add) {
  AddAtomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address, add, 0);
}
void WrLocalInvalidate(ibv_qp_ex* qp, uint32_t rkey) { Add(qp, IBV_WR_LOCAL_INV).invalidate_rkey = rkey; }

void SetDatagramAddress(ibv_qp_ex* qp, ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  BatchOf(qp).SetDatagramAddress(ah, remote_qpn, remote_qkey);
}

void SetInlineData(ibv_qp_ex* qp, void* address, size_t length) {
  const ibv_data_buf buffer = {address, length};
  BatchOf(qp).SetInline(&buffer, 1);
}
void SetInlineDataList(ibv_qp_ex* qp, size_t count, const ibv_data_buf* buffers) {
  BatchOf(qp).SetInline(buffers, count);
}
void SetSge(ibv_qp_ex* qp, uint32_t lkey, uint64_t address, uint32_t length) {
  const ibv_sge sge = {address, length, lkey};
  BatchOf(qp).SetSges(&sge, 1);
}
void SetSharedReceiveQueue(ibv_qp_ex* qp, uint32_t number) { BatchOf(qp).SetSharedReceiveQueue(number); }
void SetSgeList(ibv_qp_ex* qp, size_t count, const ibv_sge* sges) { BatchOf(qp).SetSges(sges, count); }

void Start(ibv_qp_ex* qp) { BatchOf(qp).Start(); }
int Complete(ibv_qp_ex* qp) {
  if (faults::Enabled(faults::Kind::kFail)) [[unlikely]] BatchOf(qp).Inject(qp->qp_base);
  return Report(BatchOf(qp).Complete(*FromPublic(qp)->engine));
}
void Abort(ibv_qp_ex* qp) { BatchOf(qp).Abort(); }

// An operation that the program did not, or could not, ask for at creation: ibv_wr_complete fails.
template <typename... Arguments>
void Refuse(void (*&operation)(ibv_qp_ex*, Arguments...)) {
  operation = [](ibv_qp_ex* qp, Arguments...) { BatchOf(qp).Refuse(EOPNOTSUPP); };
}

}  // namespace

int FillSendOperations(Qp* qp, ibv_qp_type type, uint64_t send_ops_flags, Persona persona) {
  if (type == IBV_QPT_XRC_RECV) return EOPNOTSUPP;  // it sends nothing
  const uint64_t supported = type == IBV_QPT_UD          ? kSupportedDatagrams
                             : type == IBV_QPT_UC          ? kSupportedUnreliable
                             : persona == Persona::kRoce ? kSupportedByRoce
                                                         : kSupported;
  if (send_ops_flags & ~supported) return EOPNOTSUPP;
  qp->batch = std::make_unique<SendBatch>();
  Refuse(qp->wr_atomic_cmp_swp);
  Refuse(qp->wr_atomic_fetch_add);
  Refuse(qp->wr_bind_mw);
  Refuse(qp->wr_local_inv);
  Refuse(qp->wr_rdma_read);
  Refuse(qp->wr_rdma_write);
  Refuse(qp->wr_rdma_write_imm);
  Refuse(qp->wr_send);
  Refuse(qp->wr_send_imm);
  Refuse(qp->wr_send_inv);
  Refuse(qp->wr_send_tso);
  Refuse(qp->wr_set_ud_addr);
  Refuse(qp->wr_set_xrc_srqn);
  Refuse(qp->wr_atomic_write);
  if (send_ops_flags & IBV_QP_EX_WITH_BIND_MW) qp->wr_bind_mw = WrBindWindow;
  if (send_ops_flags & IBV_QP_EX_WITH_LOCAL_INV) qp->wr_local_inv = WrLocalInvalidate;
  if (send_ops_flags & IBV_QP_EX_WITH_RDMA_READ) qp->wr_rdma_read = WrRdmaRead;
  if (send_ops_flags & IBV_QP_EX_WITH_RDMA_WRITE) qp->wr_rdma_write = WrRdmaWrite;
  if (send_ops_flags & IBV_QP_EX_WITH_SEND) qp->wr_send = WrSend;
  if (send_ops_flags & IBV_QP_EX_WITH_SEND_WITH_IMM) qp->wr_send_imm = WrSendImmediate;
  if (send_ops_flags & IBV_QP_EX_WITH_SEND_WITH_INV) qp->wr_send_inv = WrSendInvalidate;
  if (type == IBV_QPT_UD) qp->wr_set_ud_addr = SetDatagramAddress;
  if (type == IBV_QPT_XRC_SEND) qp->wr_set_xrc_srqn = SetSharedReceiveQueue;
  if (send_ops_flags & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM) qp->wr_rdma_write_imm = WrRdmaWriteImmediate;
  if (send_ops_flags & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP) qp->wr_atomic_cmp_swp = WrCompareSwap;
  if (send_ops_flags & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD) qp->wr_atomic_fetch_add = WrFetchAdd;
  qp->wr_set_inline_data = SetInlineData;
  qp->wr_set_inline_data_list = SetInlineDataList;
  qp->wr_set_sge = SetSge;
  qp->wr_set_sge_list = SetSgeList;
  qp->wr_start = Start;
  qp->wr_complete = Complete;
  qp->wr_abort = Abort;
  return 0;
}

}  // namespace weft::verbs
