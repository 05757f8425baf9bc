#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "base/settings.h"
#include "faults/injector.h"
#include "sim/queue_pair/queue_pair.h"
#include "sim/queue_pair/internal.h"

// Failures on demand at a queue pair, and what it says of itself. Nothing here is reached without faults, but Snapshot().
namespace weft::sim {

void QueuePair::ApplyFaults() {
  EngineLock engine(*this);
  if (connection_ == nullptr) return;
  connection_->channel->ApplyFaults();
  Step(/*eager=*/true);
  if (connection_ != nullptr) connection_->channel->UpdateInterest();
}

// With the engine held. Whether a fault says that this request is not carried out; its status is in the entry.
bool QueuePair::InjectStatus(SendEntry& entry) {
  if (std::exchange(entry.asked, true)) return entry.status != IBV_WC_SUCCESS;
  const transport::SocketAddress& peer = last_peer_;
  const auto fault = faults::Injector::Process().Ask(
      faults::Kind::kCompletion,
      {.qp = number_, .peer = &peer, .opcode = static_cast<int>(entry.opcode), .device = options_.device.c_str()},
      Format("qp 0x%x, peer %s: work request %llu (%s) completes with an error", number_, peer.ToString().c_str(),
             static_cast<unsigned long long>(entry.id),
             faults::NameIn(faults::OpcodeWords(), static_cast<int>(entry.opcode)).c_str()));
  if (!fault) return false;
  entry.status = static_cast<ibv_wc_status>(fault->status);
  return true;
}

// With the engine held: the status with which a fault says that the receive that was just taken completes; success: none does.
ibv_wc_status QueuePair::InjectReceiveStatus() {
  const transport::SocketAddress& peer = last_peer_;
  const auto fault = faults::Injector::Process().Ask(
      faults::Kind::kCompletion, {.qp = number_, .peer = &peer, .opcode = faults::kReceiveOpcode, .device = options_.device.c_str()},
      Format("qp 0x%x, peer %s: a receive completes with an error", number_, peer.ToString().c_str()));
  return fault ? static_cast<ibv_wc_status>(fault->status) : IBV_WC_SUCCESS;
}

// With the engine held. Whether a fault says that no receive is posted.
bool QueuePair::InjectNotReady() {
  const transport::SocketAddress& peer = last_peer_;
  return faults::Injector::Process()
      .Ask(faults::Kind::kRnr, {.qp = number_, .peer = &peer, .device = options_.device.c_str()},
           Format("qp 0x%x, peer %s: as if no receive were posted", number_, peer.ToString().c_str()))
      .has_value();
}

void QueuePair::FailFatally(const std::string& device) {
  if (options_.device != device) return;
  EngineLock engine(*this);
  if (state() == IBV_QPS_RESET || state() == IBV_QPS_ERR) return;
  Fail(/*orderly=*/false);
}

std::string QueuePair::CaptureComment() const {
  if (ProcessSettings().pcap.empty()) return {};
  return Format("Weft: queue pair 0x%x of process %d, device %s", number_, static_cast<int>(getpid()), options_.device.c_str());
}

QueuePairSnapshot QueuePair::Snapshot() {
  QueuePairSnapshot snapshot{.number = number_,
                             .type = options_.type,
                             .state = state(),
                             .device = options_.device,
                             .sends_posted = sends_.posted(),
                             .sends_completed = sends_.retired(),
                             .receives_posted = receives_.posted(),
                             .receives_completed = receives_.completed(),
                             .bytes_sent = counters_.bytes_sent.value(),
                             .bytes_received = counters_.bytes_received.value(),
                             .errors = counters_.errors.value(),
                             .retries = counters_.retries.value(),
                             .rnr = counters_.rnr.value()};
  EngineLock engine(*this);
  if (last_peer_.family() != 0) snapshot.peer = last_peer_.ToString();
  return snapshot;
}

}  // namespace weft::sim
