#include "sim/report.h"

#include <unistd.h>

#include <fstream>
#include <random>
#include <utility>

#include "base/log.h"
#include "control/server.h"
#include "faults/injector.h"
#include "sim/queues/names.h"

namespace weft::sim {
namespace {

unsigned long long Long(uint64_t value) { return value; }

std::string ProgramName() {
  std::string name;
  std::getline(std::ifstream("/proc/self/comm"), name);
  return name;
}

control::Answer SetFaults(const std::string& specification) {
  auto plan = faults::Parse(specification);
  if (!plan.ok()) return {false, plan.error().Describe(specification)};
  if (!plan->seed && !plan->faults.empty()) plan->seed = std::random_device{}();
  std::string text;
  for (const faults::Fault& fault : plan->faults) text += fault.text + "\n";
  if (plan->seed) text += "seed=" + std::to_string(*plan->seed) + "\n";
  // The program may end of it at once.
  return {true, text, [plan = std::move(*plan)] { faults::Injector::Process().Set(plan); }};
}

control::Answer Handle(const std::function<std::string()>& describe, const std::string& command, const std::string& body) {
  if (command == "stat") return {true, describe()};
  if (command == "faults show") return {true, faults::Injector::Process().Show()};
  if (command == "faults set") return SetFaults(body);
  if (command == "faults clear") return SetFaults("");
  return {false, "unknown request; do the weft command and the program's libraries have the same version?"};
}

}  // namespace

std::string Describe(Persona persona, const Snapshots& queue_pairs, const std::vector<llp::PathState>& paths) {
  std::string text = "process\tpid=" + std::to_string(getpid()) + "\tprogram=" + ProgramName() +
                     "\tpersona=" + (persona == Persona::kRoce ? "roce" : "iwarp") + "\n";
  for (const QueuePairSnapshot& qp : queue_pairs) {
    text += Format("qp\tqp=0x%x\ttype=%s\tstate=%s\tdevice=%s\tpeer=%s\twire=%s", qp.number, NameOf(qp.type), NameOf(qp.state), qp.device.c_str(),
                   qp.peer.c_str(), qp.wire.c_str());
    text += Format("\tsends_posted=%llu\tsends_completed=%llu\treceives_posted=%llu\treceives_completed=%llu", Long(qp.sends_posted),
                   Long(qp.sends_completed), Long(qp.receives_posted), Long(qp.receives_completed));
    text += Format("\tbytes_sent=%llu\tbytes_received=%llu\tretries=%llu\trnr=%llu\terrors=%llu\n", Long(qp.bytes_sent),
                   Long(qp.bytes_received), Long(qp.retries), Long(qp.rnr), Long(qp.errors));
  }
  for (const llp::PathState& path : paths) {
    text += Format("path\tassociation=%u\tpeer=%s\tstate=%s\tprimary=%d\trtt_ms=%u\tcongestion_window=%u\tmtu=%u", path.association,
                   path.peer.ToString().c_str(), path.state, path.primary, path.rtt_ms, path.congestion_window, path.mtu);
    text += Format("\tpackets_sent=%llu\tbytes_sent=%llu\tpackets_received=%llu\tbytes_received=%llu\tfailures=%u\n", Long(path.packets_out),
                   Long(path.bytes_out), Long(path.packets_in), Long(path.bytes_in), path.failures);
  }
  return text;
}

std::string Summarize(const Snapshots& destroyed, const Snapshots& queue_pairs) {
  std::string text = Format("statistics of %s (%d): %zu queue pairs\n", ProgramName().c_str(), static_cast<int>(getpid()),
                            destroyed.size() + queue_pairs.size());
  const auto add = [&](const QueuePairSnapshot& qp, const char* state) {
    text += Format("  qp 0x%x %s %s, peer %s: %llu of %llu sends, %llu of %llu receives completed, %llu with errors; ", qp.number,
                   NameOf(qp.type), state, qp.peer.empty() ? "none" : qp.peer.c_str(), Long(qp.sends_completed), Long(qp.sends_posted),
                   Long(qp.receives_completed), Long(qp.receives_posted), Long(qp.errors));
    text += Format("%llu bytes sent, %llu received, %llu retries, %llu RNR\n", Long(qp.bytes_sent), Long(qp.bytes_received),
                   Long(qp.retries), Long(qp.rnr));
  };
  for (const QueuePairSnapshot& qp : destroyed) add(qp, "destroyed");
  for (const QueuePairSnapshot& qp : queue_pairs) add(qp, NameOf(qp.state));
  return text + faults::Injector::Process().Show();
}

std::shared_ptr<void> ServeRequests(transport::Network& network, std::function<std::string()> describe) {
  return control::Server::Start(network, [describe = std::move(describe)](const std::string& command, const std::string& body) {
    return Handle(describe, command, body);
  });
}

}  // namespace weft::sim
