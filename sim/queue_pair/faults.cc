#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "base/settings.h"
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
                             .sends_posted = sends().posted(),
                             .sends_completed = sends().retired(),
                             .receives_posted = responder_.queue().posted(),
                             .receives_completed = responder_.queue().completed(),
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
