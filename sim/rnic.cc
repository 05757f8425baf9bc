#include "sim/rnic.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "faults/injector.h"
#include "sim/cm/engine.h"
#include "transport/tcp_network.h"
#include "wires/choice/wire.h"

namespace weft::sim {
namespace {

constexpr std::chrono::milliseconds kExitLimit{200};  // for all queue pairs that other threads are at when the process ends
constexpr size_t kMostGone = 10000;  // queue pairs that are kept in mind for the summary

std::atomic<QueuePairResolver> g_resolver{nullptr};

// The same for all processes that run on one kernel since its boot.
uint64_t HostId() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : boot) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return hash;
}

}  // namespace

Rnic& Rnic::Process() {
  // Deliberately never destroyed: the progress thread may still use it while the process exits.
  static std::mutex mutex;
  static Rnic* instance = nullptr;
  static pid_t owner = 0;
  std::lock_guard lock(mutex);
  if (instance == nullptr || owner != getpid()) {
    owner = getpid();
    instance = new Rnic(transport::ProcessNetwork(), ProcessSettings(), HostId());
    static std::once_flag at_exit;
    std::call_once(at_exit, [] {
      std::atexit([] {
        if (instance != nullptr && owner == getpid()) instance->OnExit();
      });
    });
    instance->ServeProcess();
  }
  return *instance;
}

Rnic::Rnic(transport::Network& network, const Settings& settings, uint64_t host_id, std::unique_ptr<llp::Wire> wire)
    : network_(network),
      settings_(settings),
      host_id_(host_id),
      ports_(network),
      wire_(wire != nullptr ? std::move(wire) : MakeWire(network_, pool_, settings_)),
      cm_(MakeCmEngine({network_, *wire_, host_id_, &Rnic::QueuePairOf})),
      queue_pair_ports_(std::make_unique<QueuePairPorts>(Surroundings{network_, *wire_, host_id_, &Rnic::QueuePairOf}, settings_, *cm_)),
      datagram_ports_(network),
      device_faults_(std::make_shared<DeviceFaults>(*this)) {
  faults::Injector::Process().AddObserver(device_faults_);
}

void Rnic::ServeProcess() {
  if (settings_.control) {
    control_ = ServeRequests(network_, [this] { return Describe(settings_.persona, StateOfAll(), wire_->Paths()); });
  }
  if (settings_.stats) {
    static std::atomic<Rnic*> newest{nullptr};
    if (newest.exchange(this) == nullptr) {
      std::atexit([] { LogLines(newest.load()->Summary()); });
    }
  }
}

void Rnic::OnExit() {
  const auto until = std::chrono::steady_clock::now() + kExitLimit;
  for (const auto& qp : QueuePairs()) qp->OnExit(until);
}

Rnic::~Rnic() = default;

void Rnic::SetQueuePairResolver(QueuePairResolver resolver) { g_resolver.store(resolver); }

std::shared_ptr<QueuePair> Rnic::QueuePairOf(ibv_qp* qp) {
  const QueuePairResolver resolver = g_resolver.load();
  return resolver == nullptr || qp == nullptr ? nullptr : resolver(qp);
}

std::shared_ptr<Pd> Rnic::AllocatePd() { return std::make_shared<Pd>(next_pd_.fetch_add(1)); }

int Rnic::DeregisterMemory(ddp::STag stag) {
  RegionInfo gone;
  if (int error = memory_.Deregister(stag, &gone)) return error;
  TakeBack(gone);
  return 0;
}

Result<RegionInfo, int> Rnic::ReregisterMemory(ddp::STag stag, Pd& pd, uint64_t address, uint64_t length, uint64_t offset,
                                              int access) {
  RegionInfo gone;
  auto region = memory_.Reregister(stag, pd, address, length, offset, access, &gone);
  if (region.ok()) TakeBack(gone);
  return region;
}

void Rnic::DeallocateWindow(ddp::STag stag) {
  RegionInfo gone;
  if (memory_.DeallocateWindow(stag, &gone)) TakeBack(gone);
}

// Nobody touches it any more after return, however slow a peer is.
void Rnic::TakeBack(const RegionInfo& gone) {
  for (const auto& lent : ForgetRegion(gone, nullptr)) lent->Await(reinterpret_cast<const void*>(gone.address), gone.length);
}

Adapter::Lent Rnic::ForgetRegion(const RegionInfo& gone, const AnyQueuePair* but) {
  if (gone.users == 0) return {};
  std::vector<std::shared_ptr<AnyQueuePair>> queue_pairs;
  {
    std::lock_guard lock(mutex_);
    queue_pairs = queue_pairs_.Of(gone.users);
  }
  Lent unsettled;
  for (const auto& qp : queue_pairs) {
    if (qp.get() == but) continue;
    if (auto lent = qp->ForgetRegion(gone)) unsettled.push_back(std::move(lent));
  }
  return unsettled;
}

Result<std::shared_ptr<QueuePair>, int> Rnic::CreateQueuePair(QueuePairOptions options) {
  std::lock_guard lock(mutex_);
  if (queue_pairs_.size() >= kMaxQp) return ENOMEM;
  uint32_t number = 0;
  const bool roce = settings_.persona == Persona::kRoce;
  if (roce) {
    // The number says where the process can be reached. Datagram queue pairs have theirs from UDP ports, which may be equal.
    std::vector<uint32_t> in_use;
    do {
      auto allocated = queue_pair_ports_->Allocate();
      if (!allocated.ok()) return allocated.error();
      number = *allocated;
      if (queue_pairs_.contains(number)) in_use.push_back(number);
    } while (queue_pairs_.contains(number));
    for (uint32_t other : in_use) queue_pair_ports_->Release(other);
  } else {
    while (queue_pairs_.contains(next_number_) || next_number_ < 2) next_number_ = (next_number_ + 1) & 0xffffff;
    number = next_number_;
    next_number_ = (next_number_ + 1) & 0xffffff;
  }
  auto qp = std::make_shared<QueuePair>(*this, roce ? queue_pair_ports_.get() : nullptr, number, std::move(options));
  queue_pairs_.Add(number, qp);
  return qp;
}

std::shared_ptr<SharedReceiveQueue> Rnic::CreateSharedReceiveQueue(std::shared_ptr<Pd> pd, uint32_t max_wr, uint32_t max_sge,
                                                                   std::shared_ptr<AsyncSink> async, void* owner,
                                                                   std::shared_ptr<CompletionQueue> completions) {
  const uint32_t number = next_srq_.fetch_add(1) % 0xffffff + 1;
  return std::make_shared<SharedReceiveQueue>(std::move(pd), number, max_wr, max_sge, std::move(async), owner, std::move(completions));
}

Result<std::shared_ptr<DatagramQueuePair>, int> Rnic::CreateDatagramQueuePair(DatagramOptions options) {
  std::lock_guard lock(mutex_);
  if (queue_pairs_.size() >= kMaxQp) return ENOMEM;
  auto qp = datagram_ports_.Add([this](uint32_t candidate) { return !queue_pairs_.contains(candidate); },
                                [&](const DatagramPorts::Place& place) {
                                  return std::make_shared<DatagramQueuePair>(*this, datagram_ports_, place, std::move(options));
                                });
  if (qp.ok()) queue_pairs_.Add((*qp)->number(), *qp);
  return qp;
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

std::vector<std::shared_ptr<AnyQueuePair>> Rnic::QueuePairs() {
  std::lock_guard lock(mutex_);
  return queue_pairs_.Of(kAllMemoryUsers);
}

void Rnic::ApplyFaults() {
  for (const auto& qp : QueuePairs()) qp->ApplyFaults();
}

Snapshots Rnic::StateOfAll() {
  Snapshots snapshots;
  for (const auto& qp : QueuePairs()) snapshots.push_back(qp->Snapshot());
  std::sort(snapshots.begin(), snapshots.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return snapshots;
}

std::string Rnic::Summary() {
  Snapshots gone;
  {
    std::lock_guard lock(mutex_);
    gone = gone_;
  }
  return Summarize(gone, StateOfAll());
}

}  // namespace weft::sim
