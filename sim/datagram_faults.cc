#include "base/log.h"
#include "faults/injector.h"
#include "sim/datagram_queue_pair.h"

// Failures on demand at a datagram queue pair. Nothing here is reached without faults, but FailSends() and CheckOverrun().
namespace weft::sim {

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
