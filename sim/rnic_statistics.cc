#include <infiniband/verbs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <random>
#include <utility>

#include "base/log.h"
#include "control/server.h"
#include "faults/injector.h"
#include "sim/queues/names.h"
#include "sim/rnic.h"

// What an RNIC says of itself: to `weft stat`, to `weft faults`, and with WEFT_STATS=1 at exit.
namespace weft::sim {
namespace {

constexpr size_t kMostGone = 10000;  // queue pairs that are kept in mind for the summary

unsigned long long Long(uint64_t value) { return value; }

std::string ProgramName() {
  std::string name;
  std::getline(std::ifstream("/proc/self/comm"), name);
  return name;
}

// One line for each queue pair: KEY=VALUE with tabs between. tools/weft/stat.cc reads it.
std::string Describe(Rnic& rnic) {
  std::string text = "process\tpid=" + std::to_string(getpid()) + "\tprogram=" + ProgramName() +
                     "\tpersona=" + (rnic.settings().persona == Persona::kRoce ? "roce" : "iwarp") + "\n";
  for (const QueuePairSnapshot& qp : rnic.Snapshots()) {
    text += Format("qp\tqp=0x%x\ttype=%s\tstate=%s\tdevice=%s\tpeer=%s", qp.number, NameOf(qp.type), NameOf(qp.state), qp.device.c_str(),
                   qp.peer.c_str());
    text += Format("\tsends_posted=%llu\tsends_completed=%llu\treceives_posted=%llu\treceives_completed=%llu", Long(qp.sends_posted),
                   Long(qp.sends_completed), Long(qp.receives_posted), Long(qp.receives_completed));
    text += Format("\tbytes_sent=%llu\tbytes_received=%llu\tretries=%llu\trnr=%llu\terrors=%llu\n", Long(qp.bytes_sent),
                   Long(qp.bytes_received), Long(qp.retries), Long(qp.rnr), Long(qp.errors));
  }
  return text;
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

control::Answer Handle(Rnic& rnic, const std::string& command, const std::string& body) {
  if (command == "stat") return {true, Describe(rnic)};
  if (command == "faults show") return {true, faults::Injector::Process().Show()};
  if (command == "faults set") return SetFaults(body);
  if (command == "faults clear") return SetFaults("");
  return {false, "unknown request; are the command weft and the program's libraries of one version?"};
}

}  // namespace

void Rnic::ServeProcess() {
  if (settings_.control) {
    control_ = control::Server::Start(
        network_, [this](const std::string& command, const std::string& body) { return Handle(*this, command, body); });
  }
  if (settings_.stats) {
    static std::atomic<Rnic*> newest{nullptr};
    if (newest.exchange(this) == nullptr) {
      std::atexit([] { LogLines(newest.load()->Summary()); });
    }
  }
}

std::vector<std::shared_ptr<AnyQueuePair>> Rnic::QueuePairs() {
  std::lock_guard lock(mutex_);
  return queue_pairs_.Of(kAllMemoryUsers);
}

std::vector<QueuePairSnapshot> Rnic::Snapshots() {
  std::vector<QueuePairSnapshot> snapshots;
  for (const auto& qp : QueuePairs()) snapshots.push_back(qp->Snapshot());
  std::sort(snapshots.begin(), snapshots.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return snapshots;
}

std::string Rnic::Summary() {
  std::vector<QueuePairSnapshot> all;
  {
    std::lock_guard lock(mutex_);
    all = gone_;
  }
  const size_t gone = all.size();
  for (QueuePairSnapshot& qp : Snapshots()) all.push_back(std::move(qp));
  std::string text = Format("statistics of %s (%d): %zu queue pairs\n", ProgramName().c_str(), static_cast<int>(getpid()), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const QueuePairSnapshot& qp = all[i];
    text += Format("  qp 0x%x %s %s, peer %s: %llu of %llu sends, %llu of %llu receives completed, %llu with errors; ", qp.number,
                   NameOf(qp.type), i < gone ? "destroyed" : NameOf(qp.state), qp.peer.empty() ? "none" : qp.peer.c_str(),
                   Long(qp.sends_completed), Long(qp.sends_posted), Long(qp.receives_completed), Long(qp.receives_posted),
                   Long(qp.errors));
    text += Format("%llu bytes sent, %llu received, %llu retries, %llu RNR\n", Long(qp.bytes_sent), Long(qp.bytes_received),
                   Long(qp.retries), Long(qp.rnr));
  }
  return text + faults::Injector::Process().Show();
}

void Rnic::ForgetQueuePair(uint32_t number) {
  std::shared_ptr<AnyQueuePair> qp;  // destroyed after the lock is released
  std::optional<QueuePairSnapshot> last;
  if (settings_.stats) {
    {
      std::lock_guard lock(mutex_);
      qp = queue_pairs_.Find(number);
    }
    if (qp != nullptr) last = qp->Snapshot();
  }
  std::lock_guard lock(mutex_);
  queue_pairs_.Erase(number);
  if (last && gone_.size() < kMostGone) gone_.push_back(std::move(*last));
}

void Rnic::ApplyFaults() {
  for (const auto& qp : QueuePairs()) qp->ApplyFaults();
}

}  // namespace weft::sim
