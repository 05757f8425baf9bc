#include "sim/datagram/queue_pair.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/program_memory.h"
#include "faults/injector.h"
#include "sim/device/limits.h"
#include "sim/queue_pair/transitions.h"

namespace weft::sim {
namespace {

constexpr size_t kBatch = 32;  // datagrams handed to the kernel at once
constexpr size_t kGrh = std::tuple_size_v<GlobalHeader>;
// What mlx5 adapters report as a datagram's service level over RoCE v2, and UCX reads to know which header lies in front of it: 1 IPv6, 2 IPv4.
constexpr uint8_t kOverIpv6 = 1, kOverIpv4 = 2;
// The Q_Key of the queue pair itself is sent instead of one with this bit (IBTA volume 1 section 10.2.5).
constexpr uint32_t kOwnQkey = 0x80000000;

bool MayReceive(ibv_qp_state state) {
  return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE;
}

// Memory may be gone although it is registered: UCX unmaps what its receives name before it destroys the queue pair. An adapter goes on to
// write to pages that it has pinned; what the kernel cannot place here nobody could see.
void Place(ByteSpan header, ByteSpan payload, std::span<const iovec> into) {
  const iovec from[] = {{const_cast<uint8_t*>(header.data()), header.size()}, {const_cast<uint8_t*>(payload.data()), payload.size()}};
  static_cast<void>(ScatterToProgramMemory(into, from));
}

}  // namespace

// What one batch needs while the kernel takes it.
struct DatagramQueuePair::Outgoing {
  explicit Outgoing(size_t pieces) : per_datagram(pieces), pieces(kBatch * pieces) {}
  const size_t per_datagram;
  std::vector<iovec> pieces;
  uint8_t headers[kBatch][DatagramHeader::kLength];
  transport::OutgoingDatagram datagrams[kBatch];
};

DatagramQueuePair::DatagramQueuePair(Adapter& adapter, DatagramPorts& ports, DatagramPorts::Place place, DatagramOptions options)
    : adapter_(adapter),
      ports_(ports),
      port_(std::move(place.port)),
      number_(place.number),
      max_payload_(std::min(options.max_payload, kMaxDatagram)),
      options_(std::move(options.common)),
      receives_(options_.shared_receives ? 1 : options_.capabilities.max_recv_wr,
                options_.shared_receives ? options_.shared_receives->max_sge() : options_.capabilities.max_recv_sge),
      sends_({options_.capabilities.max_send_wr, options_.capabilities.max_send_sge, options_.capabilities.max_inline_data,
              max_payload_, options_.pd->id}) {
  if (options_.shared_receives) {
    options_.shared_receives->users.fetch_add(1);
    options_.capabilities.max_recv_wr = options_.capabilities.max_recv_sge = 0;
  }
  options_.pd->users.fetch_add(1);
  options_.send_cq->users.fetch_add(1);
  options_.receive_cq->users.fetch_add(1);
}

DatagramQueuePair::~DatagramQueuePair() = default;

transport::Network& DatagramQueuePair::network() const { return adapter_.network(); }

// --- Sending -----------------------------------------------------------------------------------------------------------------

int DatagramQueuePair::PostSend(ibv_send_wr* list, ibv_send_wr** bad, bool all_or_nothing) {
  std::unique_lock lock(send_mutex_);
  const ibv_qp_state state = this->state();
  if (state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR) {
    *bad = list;
    return EINVAL;
  }
  int error = 0;
  uint32_t staged = 0;
  for (; list != nullptr; list = list->next) {
    error = sends_.Stage(*list, options_.signal_all, staged);
    if (error != 0) {
      *bad = list;
      break;
    }
    DatagramHeader& header = sends_.entry(sends_.posted() + staged).header;
    header.source = number_;
    if (header.qkey & kOwnQkey) header.qkey = own_qkey_;
    ++staged;
  }
  if (staged == 0 || (error != 0 && all_or_nothing)) return error;
  sends_.Publish(staged);
  Transmit();
  lock.unlock();
  CheckOverrun();
  return error;
}

void DatagramQueuePair::Transmit() {
  const ibv_qp_state state = this->state();
  if (state == IBV_QPS_ERR || state == IBV_QPS_SQE) return FlushSends();
  if (state != IBV_QPS_RTS) return;
  if (outgoing_ == nullptr) outgoing_ = std::make_unique<Outgoing>(1 + options_.capabilities.max_send_sge);
  while (!sends_.empty()) {
    if (const DatagramSend& next = sends_.entry(sends_.retired()); next.foreign) {
      // An error of the completion, not of the post (IBTA volume 1, C10-10).
      LogWarning(Format("QP 0x%x: the address handle of work request %llu belongs to another protection domain; the send queue is in error", number_,
                        static_cast<unsigned long long>(next.id)));
      return FailSends(IBV_WC_LOC_QP_OP_ERR);
    }
    if (sends_.entry(sends_.retired()).too_long) {
      SkipTooLong();
      continue;
    }
    const uint64_t waiting = sends_.posted() - sends_.retired();
    size_t wanted = 1;
    while (wanted < kBatch && wanted < waiting && sends_.entry(sends_.retired() + wanted).sendable()) ++wanted;
    if (faults::Enabled()) [[unlikely]] {
      // One at a time, so that each can fail.
      const ibv_wc_status status = InjectSendStatus(sends_.entry(sends_.retired()));
      if (status != IBV_WC_SUCCESS) return FailSends(status);
      if (PortIsDown()) {
        CompleteSend(IBV_WC_SUCCESS);  // it is lost
        continue;
      }
      wanted = 1;
    }
    const size_t ready = Gather(sends_.retired(), wanted);
    int error = 0;
    const size_t sent = ready == 0 ? 0 : port_->socket().Send({outgoing_->datagrams, ready}, &error);
    for (size_t i = 0; i < sent; ++i) CompleteSend(IBV_WC_SUCCESS);
    if (sent < ready) {
      if (error == EAGAIN) {
        if (!awaiting_writable_.exchange(true)) port_->AwaitWritable(weak_from_this());
        return;
      }
      // A datagram that cannot be delivered is lost, as any.
      if (!std::exchange(drop_reported_, true)) {
        const auto& lost = outgoing_->datagrams[sent];
        LogWarning(Format("QP 0x%x: datagrams to %s are lost: %s", number_, lost.to.ToString().c_str(), std::strerror(error)));
      }
      CompleteSend(IBV_WC_SUCCESS);
    } else if (ready < wanted) {
      LogWarning(Format("QP 0x%x: work request %llu names memory that is not registered in this protection domain; the send queue is in error",
                        number_, static_cast<unsigned long long>(sends_.entry(sends_.retired()).id)));
      return FailSends(IBV_WC_LOC_PROT_ERR);
    }
  }
}

// "If the total sum of all the buffer lengths specified for a UD message exceeds the MTU of the port [...], the CI shall not emit any packets for
// this message. Further, the CI shall not generate an error due to this condition" (IBTA volume 1, C10-93.1.1).
void DatagramQueuePair::SkipTooLong() {
  if (!std::exchange(too_long_reported_, true)) {
    LogWarning(Format("QP 0x%x: work request %llu is longer than a datagram of the port (%u bytes); it is not sent", number_,
                      static_cast<unsigned long long>(sends_.entry(sends_.retired()).id), max_payload_));
  }
  CompleteSend(IBV_WC_SUCCESS);
}

size_t DatagramQueuePair::Gather(uint64_t first, size_t most) {
  for (size_t i = 0; i < most; ++i) {
    if (!Resolve(first + i, i)) return i;
    const DatagramSend& entry = sends_.entry(first + i);
    transport::OutgoingDatagram& datagram = outgoing_->datagrams[i];
    entry.header.SerializeTo(outgoing_->headers[i]);
    datagram.to = entry.to;
    datagram.from = entry.from;
    datagram.interface = entry.interface;
  }
  return most;
}

bool DatagramQueuePair::Resolve(uint64_t count, size_t slot) {
  const DatagramSend& entry = sends_.entry(count);
  iovec* const pieces = &outgoing_->pieces[slot * outgoing_->per_datagram];
  size_t used = 0;
  pieces[used++] = {outgoing_->headers[slot], DatagramHeader::kLength};
  if (entry.is_inline) {
    pieces[used++] = {const_cast<uint8_t*>(sends_.inline_bytes(count)), entry.header.length};
  } else {
    for (size_t i = 0; i < entry.pieces; ++i) {
      const ibv_sge& element = sends_.elements(count)[i];
      if (element.length == 0) continue;
      uint8_t* bytes = adapter_.memory().ResolveLocal(*options_.pd, element.lkey, element.addr, element.length, false, false, memory_user_);
      if (bytes == nullptr) return false;
      pieces[used++] = {bytes, element.length};
    }
  }
  outgoing_->datagrams[slot].pieces = {pieces, used};
  return true;
}

void DatagramQueuePair::CompleteSend(ibv_wc_status status) {
  const DatagramSend& entry = sends_.entry(sends_.retired());
  const bool tell = entry.signaled || status != IBV_WC_SUCCESS;
  ibv_wc completion{};
  completion.wr_id = entry.id;
  completion.status = status;
  completion.opcode = IBV_WC_SEND;
  completion.byte_len = entry.header.length;
  completion.qp_num = number_;
  if (status == IBV_WC_SUCCESS) counters_.bytes_sent.Add(entry.header.length);
  sends_.Retire();
  failed_sends_ += status != IBV_WC_SUCCESS;
  if (tell) Push(*options_.send_cq, completion, false);
}

void DatagramQueuePair::FlushSends() {
  while (!sends_.empty()) CompleteSend(IBV_WC_WR_FLUSH_ERR);
}

void DatagramQueuePair::OnWritable() {
  {
    std::lock_guard lock(send_mutex_);
    awaiting_writable_ = false;
    Transmit();
  }
  CheckOverrun();
}

// --- Receiving ---------------------------------------------------------------------------------------------------------------

int DatagramQueuePair::PostReceive(ibv_recv_wr* list, ibv_recv_wr** bad) {
  if (state() == IBV_QPS_RESET || options_.shared_receives) {
    *bad = list;
    return EINVAL;
  }
  const int error = receives_.Post(list, bad);
  if (state() == IBV_QPS_ERR) {
    std::lock_guard lock(mutex_);
    if (state() == IBV_QPS_ERR) FlushReceives();
  }
  return error;
}

void DatagramQueuePair::OnDatagram(const ReceivedDatagram& datagram) {
  {
    std::lock_guard lock(mutex_);
    if (!MayReceive(state())) return;
    const DatagramHeader& header = datagram.header;
    if (header.qkey != attributes_.qkey) {
      if (TraceEnabled()) Trace(Format("qp 0x%x: dropped a datagram, its Q_Key is 0x%x", number_, header.qkey));
      return;
    }
    if (header.length > max_payload_) return;
    if (faults::Enabled() && (PortIsDown() || InjectNotReady(datagram))) [[unlikely]] return;
    if (!FillReceive(datagram) || (!failed_ && !overrun_.load(std::memory_order_relaxed))) return;
    overrun_ = false;
    if (state() != IBV_QPS_ERR) {
      std::lock_guard sending(send_mutex_);
      state_.store(IBV_QPS_ERR, std::memory_order_release);
      FlushSends();
    }
    FlushReceives();
  }
  Tell(IBV_EVENT_QP_FATAL);
  if (options_.shared_receives) Tell(IBV_EVENT_QP_LAST_WQE_REACHED);
}

bool DatagramQueuePair::TakeShared() {
  if (options_.shared_receives == nullptr) return false;
  ibv_recv_wr wr;
  ibv_sge elements[kMaxSge];
  return options_.shared_receives->Take(&wr, elements) && receives_.Post(wr) == 0;
}

// Places GRH and payload in the oldest receive. False: there is none, or it is too short.
bool DatagramQueuePair::FillReceive(const ReceivedDatagram& datagram) {
  if (receives_.completed() == receives_.posted() && !TakeShared()) {
    if (TraceEnabled()) Trace(Format("qp 0x%x: dropped a datagram, no receive is posted", number_));
    return false;
  }
  const uint64_t count = receives_.completed();
  const ReceiveQueue::Entry& entry = receives_.entry(count);
  uint64_t room = 0;
  for (int i = 0; i < entry.pieces; ++i) room += receives_.elements(count)[i].length;
  if (room < kGrh + datagram.payload.size()) {
    if (TraceEnabled()) Trace(Format("qp 0x%x: dropped a datagram, the receive has room for %llu bytes", number_, static_cast<unsigned long long>(room)));
    return false;
  }
  ibv_wc completion{};
  completion.wr_id = entry.id;
  if (faults::Enabled(faults::Kind::kCompletion)) [[unlikely]] {
    completion.status = InjectReceiveStatus(datagram);
    if (completion.status != IBV_WC_SUCCESS) {
      failed_ = true;
      CompleteReceive(completion, true);
      return true;
    }
  }
  completion.byte_len = static_cast<uint32_t>(kGrh + datagram.payload.size());
  completion.src_qp = datagram.header.source;
  completion.wc_flags = IBV_WC_GRH;
  completion.sl = datagram.from.family() == AF_INET ? kOverIpv4 : kOverIpv6;
  if (datagram.header.opcode == DatagramHeader::Opcode::kSendImmediate) {
    completion.wc_flags |= IBV_WC_WITH_IMM;
    completion.imm_data = datagram.header.immediate;
  }

  counters_.bytes_received.Add(datagram.payload.size());
  const GlobalHeader grh = MakeGlobalHeader(datagram.header, datagram.from, datagram.to);
  std::array<iovec, kMaxSge> into;
  int pieces = 0;
  for (size_t left = completion.byte_len; left > 0; ++pieces) {
    const ibv_sge& element = receives_.elements(count)[pieces];
    const auto part = static_cast<uint32_t>(std::min<size_t>(left, element.length));  // what no byte goes into may be anything
    into[static_cast<size_t>(pieces)] = {nullptr, part};
    if (part == 0) continue;
    uint8_t* to = adapter_.memory().ResolveLocal(receive_pd(), element.lkey, element.addr, part, true, false, memory_user_);
    if (to == nullptr) {
      LogWarning(Format("QP 0x%x: receive %llu names memory (lkey 0x%08x, address 0x%llx, %u bytes) that is not registered with "
                        "IBV_ACCESS_LOCAL_WRITE in this protection domain; the queue pair is in error",
                        number_, static_cast<unsigned long long>(entry.id), element.lkey,
                        static_cast<unsigned long long>(element.addr), element.length));
      completion.status = IBV_WC_LOC_PROT_ERR;
      failed_ = true;
      break;
    }
    into[static_cast<size_t>(pieces)].iov_base = to;
    left -= part;
  }
  if (completion.status == IBV_WC_SUCCESS) Place(grh, datagram.payload, std::span(into).first(static_cast<size_t>(pieces)));
  CompleteReceive(completion, datagram.header.solicited);
  return true;
}

void DatagramQueuePair::CompleteReceive(ibv_wc& completion, bool solicited) {
  completion.opcode = IBV_WC_RECV;
  completion.qp_num = number_;
  failed_receives_ += completion.status != IBV_WC_SUCCESS;
  ++receives_.taken;
  receives_.Complete();
  Push(*options_.receive_cq, completion, solicited);
}

void DatagramQueuePair::FlushReceives() {
  receives_.AwaitProducers();
  while (receives_.completed() != receives_.posted()) {
    ibv_wc completion{};
    completion.wr_id = receives_.entry(receives_.completed()).id;
    completion.status = IBV_WC_WR_FLUSH_ERR;
    CompleteReceive(completion, true);
  }
}

void DatagramQueuePair::Push(CompletionQueue& cq, const ibv_wc& completion, bool solicited) {
  if (TraceEnabled()) {
    Trace(Format("qp 0x%x completion: wr_id %llu, status %d, opcode %d, %u bytes", number_,
                 static_cast<unsigned long long>(completion.wr_id), completion.status, completion.opcode, completion.byte_len));
  }
  if (!cq.Push(completion, solicited)) overrun_ = true;  // the queue says so; CheckOverrun() ends this
}

void DatagramQueuePair::FailFatally(const std::string& device) {
  if (options_.device != device || state() == IBV_QPS_RESET) return;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  Modify(attributes, IBV_QP_STATE);
}

void DatagramQueuePair::DriveInline(bool spinning) {
  port_->Drive(spinning);
  if (awaiting_writable_.load(std::memory_order_relaxed)) {  // nobody else looks at a socket that a spinning thread drives
    std::unique_lock lock(send_mutex_, std::try_to_lock);
    if (lock.owns_lock()) Transmit();
  }
  if (!has_groups_.load(std::memory_order_relaxed)) return;
  std::unique_lock lock(groups_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (const Membership& membership : groups_) membership.group->Drive(spinning);
}

// --- States ------------------------------------------------------------------------------------------------------------------

int DatagramQueuePair::Modify(const ibv_qp_attr& attributes, int mask) {
  bool attach = false, drained = false, last_receive = false;
  {
    std::scoped_lock lock(mutex_, send_mutex_);
    const ibv_qp_state from = state();
    const ibv_qp_state to = mask & IBV_QP_STATE ? attributes.qp_state : from;
    if ((mask & IBV_QP_CUR_STATE) && attributes.cur_qp_state != from) return EINVAL;
    if (!TransitionAllowed(IBV_QPT_UD, from, to, mask)) return EINVAL;
    if ((mask & IBV_QP_PORT) && attributes.port_num != 1) return EINVAL;
    if ((mask & IBV_QP_PKEY_INDEX) && attributes.pkey_index != 0) return EINVAL;
    if (mask & IBV_QP_QKEY) attributes_.qkey = own_qkey_ = attributes.qkey;
    if (mask & IBV_QP_SQ_PSN) attributes_.sq_psn = attributes.sq_psn & 0xffffff;
    if (mask & IBV_QP_PORT) attributes_.port_num = attributes.port_num;
    drained = from == IBV_QPS_RTS && to == IBV_QPS_SQD && (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && attributes.en_sqd_async_notify;
    attach = from == IBV_QPS_INIT && to == IBV_QPS_RTR;
    state_.store(to, std::memory_order_release);
    if (to == IBV_QPS_RESET) {
      Reset();
    } else if (to == IBV_QPS_ERR) {
      last_receive = from != IBV_QPS_ERR && options_.shared_receives;
      FlushSends();
      FlushReceives();
    } else if (to == IBV_QPS_RTS && from != IBV_QPS_RTS) {
      Transmit();  // what was posted while the queue drained
    }
  }
  if (attach) {
    options_.send_cq->Attach(shared_from_this(), port_->watch());
    if (options_.receive_cq != options_.send_cq) options_.receive_cq->Attach(shared_from_this(), port_->watch());
  }
  // What was posted before is with the kernel already.
  if (drained) Tell(IBV_EVENT_SQ_DRAINED);
  if (last_receive) Tell(IBV_EVENT_QP_LAST_WQE_REACHED);
  return 0;
}

void DatagramQueuePair::Tell(ibv_event_type event) {
  if (options_.async) options_.async->OnAsyncEvent(event, options_.owner);
}

void DatagramQueuePair::Reset() {
  sends_.Clear();
  receives_.Clear();
  options_.send_cq->Forget(number_);
  options_.receive_cq->Forget(number_);
  attributes_ = {};
  own_qkey_ = 0;
  failed_ = drop_reported_ = too_long_reported_ = false;
  overrun_ = false;
}

void DatagramQueuePair::Query(ibv_qp_attr* attributes, ibv_qp_init_attr* init) {
  std::scoped_lock lock(mutex_, send_mutex_);
  *attributes = attributes_;
  attributes->qp_state = attributes->cur_qp_state = state();
  attributes->port_num = 1;
  attributes->cap = options_.capabilities;
  init->cap = options_.capabilities;
  init->qp_type = IBV_QPT_UD;
  init->sq_sig_all = options_.signal_all;
}

int DatagramQueuePair::AttachGroup(const transport::SocketAddress& group, uint32_t interface) {
  std::lock_guard lock(groups_mutex_);
  for (const Membership& known : groups_) {
    if (known.address == group && known.interface == interface) return 0;  // it gets one copy all the same
  }
  auto joined = ports_.groups().Attach(this, group, interface);
  if (!joined.ok()) return joined.error();
  groups_.push_back({group, interface, std::move(joined.value())});
  has_groups_.store(true, std::memory_order_relaxed);
  return 0;
}

int DatagramQueuePair::DetachGroup(const transport::SocketAddress& group, uint32_t interface) {
  std::lock_guard lock(groups_mutex_);
  if (int error = ports_.groups().Detach(this, group, interface)) return error;
  std::erase_if(groups_, [&](const Membership& each) { return each.address == group && each.interface == interface; });
  has_groups_.store(!groups_.empty(), std::memory_order_relaxed);
  return 0;
}

std::shared_ptr<llp::LentMemory> DatagramQueuePair::ForgetRegion(const RegionInfo&) {
  // Memory is looked up for each message anew: whoever had it from an earlier look is through after this.
  std::scoped_lock lock(mutex_, send_mutex_);
  return nullptr;
}

QueuePairSnapshot DatagramQueuePair::Snapshot() {
  std::scoped_lock lock(mutex_, send_mutex_);
  return {.number = number_,
          .type = IBV_QPT_UD,
          .state = state(),
          .device = options_.device,
          .sends_posted = sends_.posted(),
          .sends_completed = sends_.retired(),
          .receives_posted = receives_.posted(),
          .receives_completed = receives_.completed(),
          .bytes_sent = counters_.bytes_sent.value(),
          .bytes_received = counters_.bytes_received.value(),
          .errors = failed_sends_ + failed_receives_};
}

void DatagramQueuePair::Destroy() {
  while (attached()) {
    transport::SocketAddress group;
    uint32_t interface;
    {
      std::lock_guard lock(groups_mutex_);
      group = groups_.front().address;
      interface = groups_.front().interface;
    }
    DetachGroup(group, interface);
  }
  ports_.Release(port_, number_);  // nothing arrives from here on
  {
    std::scoped_lock lock(mutex_, send_mutex_);
    state_.store(IBV_QPS_RESET, std::memory_order_release);
    sends_.Clear();
    receives_.Clear();
  }
  options_.send_cq->Detach(this);
  options_.receive_cq->Detach(this);
  options_.send_cq->Forget(number_);
  options_.receive_cq->Forget(number_);
  adapter_.ForgetQueuePair(number_);
  options_.pd->users.fetch_sub(1);
  options_.send_cq->users.fetch_sub(1);
  options_.receive_cq->users.fetch_sub(1);
  if (options_.shared_receives) options_.shared_receives->users.fetch_sub(1);
}

// --- failures on demand ---

// With send_mutex_ held; asked once for each.
ibv_wc_status DatagramQueuePair::InjectSendStatus(const DatagramSend& entry) {
  if (!faults::Enabled(faults::Kind::kCompletion) || asked_ == sends_.retired() + 1) return IBV_WC_SUCCESS;
  asked_ = sends_.retired() + 1;
  const ibv_wr_opcode opcode =
      entry.header.opcode == DatagramHeader::Opcode::kSendImmediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
  const auto fault = faults::Injector::Process().Ask(
      faults::Kind::kCompletion, {.qp = number_, .peer = &entry.to, .opcode = static_cast<int>(opcode), .device = options_.device.c_str()},
      Format("qp 0x%x, peer %s: work request %llu completes with an error", number_, entry.to.ToString().c_str(),
             static_cast<unsigned long long>(entry.id)));
  return fault ? static_cast<ibv_wc_status>(fault->status) : IBV_WC_SUCCESS;
}

ibv_wc_status DatagramQueuePair::InjectReceiveStatus(const ReceivedDatagram& datagram) {
  const auto fault = faults::Injector::Process().Ask(
      faults::Kind::kCompletion,
      {.qp = number_, .peer = &datagram.from, .opcode = faults::kReceiveOpcode, .device = options_.device.c_str()},
      Format("qp 0x%x, peer %s: a receive completes with an error", number_, datagram.from.ToString().c_str()));
  return fault ? static_cast<ibv_wc_status>(fault->status) : IBV_WC_SUCCESS;
}

bool DatagramQueuePair::InjectNotReady(const ReceivedDatagram& datagram) {
  if (!faults::Enabled(faults::Kind::kRnr)) return false;
  return faults::Injector::Process()
      .Ask(faults::Kind::kRnr, {.qp = number_, .peer = &datagram.from, .device = options_.device.c_str()},
           Format("qp 0x%x, peer %s: as if no receive were posted: the datagram is lost", number_, datagram.from.ToString().c_str()))
      .has_value();
}

bool DatagramQueuePair::PortIsDown() const { return faults::PortIsDown(options_.device.c_str()); }

// With send_mutex_ held: the oldest completes with `status`, and the send queue is in error (IBTA volume 1 section 10.3.1).
void DatagramQueuePair::FailSends(ibv_wc_status status) {
  state_.store(IBV_QPS_SQE, std::memory_order_release);
  CompleteSend(status);
  FlushSends();
}

void DatagramQueuePair::CheckOverrun() {
  // What is flushed to a queue that overran is lost as well.
  if (!overrun_.load(std::memory_order_relaxed) || !overrun_.exchange(false) || state() == IBV_QPS_ERR) return;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  if (Modify(attributes, IBV_QP_STATE) == 0) Tell(IBV_EVENT_QP_FATAL);
}

}  // namespace weft::sim
