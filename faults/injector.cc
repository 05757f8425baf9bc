#include "faults/injector.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/settings.h"

namespace weft::faults {
namespace {

bool Matches(const Fault& fault, Kind kind, const Place& place) {
  if (fault.kind != kind) return false;
  if (fault.qp && fault.qp != place.qp) return false;
  if (fault.Has(kPeer) && (place.peer == nullptr || !fault.peer.Matches(*place.peer))) return false;
  if (fault.opcode && fault.opcode != place.opcode) return false;
  if (fault.Has(kDevice) && (place.device == nullptr || fault.device != place.device)) return false;
  if (fault.Has(kCall) && place.call != fault.call) return false;
  if (fault.Has(kEvent) && place.event != fault.event) return false;
  return true;
}

double Uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

// Ports that are held down and devices that are dead. Never destroyed.
struct DeviceStates {
  std::mutex mutex;
  std::set<std::string> down, dead;
};
DeviceStates& Devices() {
  static DeviceStates* const states = new DeviceStates;
  return *states;
}
std::atomic<bool> g_any_device{false};  // that is or was down: asked without the lock
constexpr uint32_t kDeviceBit = 1u << 31;

}  // namespace

std::atomic<uint32_t> g_kinds{0};

Injector& Injector::Process() {
  static Injector* const injector = [] {
    auto* fresh = new Injector;
    const std::string& setting = ProcessSettings().faults;
    if (setting.empty()) return fresh;
    auto plan = ParseSetting(setting);
    if (plan.ok()) {
      fresh->Set(std::move(*plan));
    } else {
      fresh->problem_ = plan.error();
    }
    return fresh;
  }();
  return *injector;
}

void Injector::Set(Plan plan) {
  std::vector<std::weak_ptr<PlanObserver>> observers;
  {
    std::lock_guard lock(mutex_);
    seed_ = plan.seed ? *plan.seed : std::random_device{}();
    active_.clear();
    const auto now = std::chrono::steady_clock::now();
    bool random = false;
    uint32_t kinds = g_any_device.load() ? kDeviceBit : 0;
    for (Fault& fault : plan.faults) {
      kinds |= 1u << static_cast<unsigned>(fault.kind);
      random |= fault.Has(kProbability) || fault.Has(kJitter);
      auto active = std::make_shared<ActiveFault>();
      active->fault = std::move(fault);
      active->random.seed(seed_ + 0x9e3779b97f4a7c15u * (active_.size() + 1));
      active->set_at = now;
      active_.push_back(std::move(active));
    }
    if (random && !plan.seed) LogWarning(Format("faults: seed=%llu", static_cast<unsigned long long>(seed_)));
    g_kinds.store(kinds, std::memory_order_relaxed);
    observers = observers_;
  }
  for (const auto& weak : observers) {
    if (const auto observer = weak.lock()) observer->OnPlanChanged();
  }
}

std::string Injector::Show() const {
  std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& active : active_) {
    text += active->fault.text +
            Format("   # injected %llu, occasions %llu\n", static_cast<unsigned long long>(active->injected),
                   static_cast<unsigned long long>(active->occasions));
  }
  if (!text.empty()) text += Format("seed=%llu\n", static_cast<unsigned long long>(seed_));
  return text;
}

uint64_t Injector::seed() const {
  std::lock_guard lock(mutex_);
  return seed_;
}

bool Injector::Due(ActiveFault& active) {
  const Fault& fault = active.fault;
  // after= of a stream is the stream's affair: it counts from when the connection stood.
  if (!IsStreamKind(fault.kind) && fault.kind != Kind::kCmEvent && fault.Has(kAfter) &&
      std::chrono::steady_clock::now() - active.set_at < fault.after) {
    return false;
  }
  ++active.occasions;
  if (fault.times != 0 && active.injected >= fault.times) return false;
  if (fault.nth != 0 && active.occasions != fault.nth) return false;
  if (fault.every != 0 && active.occasions % fault.every != 0) return false;
  if (fault.Has(kProbability) && Uniform(active.random) >= fault.probability) return false;
  return true;
}

void Injector::Log(const ActiveFault& active, const std::string& where) const {
  // Asked for, so each is told, however many there are.
  LogLines(Format("fault %llu of \"%s\": %s", static_cast<unsigned long long>(active.injected), active.fault.text.c_str(), where.c_str()));
}

std::optional<Fault> Injector::Ask(Kind kind, const Place& place, const std::string& where) {
  std::lock_guard lock(mutex_);
  for (const auto& active : active_) {
    if (!Matches(active->fault, kind, place) || !Due(*active)) continue;
    ++active->injected;
    Log(*active, where);
    return active->fault;
  }
  return std::nullopt;
}

std::vector<std::shared_ptr<ActiveFault>> Injector::Choose(Kind kind, const Place& place) {
  std::vector<std::shared_ptr<ActiveFault>> chosen;
  std::lock_guard lock(mutex_);
  for (const auto& active : active_) {
    // Frames of a connection, and not connections, are what corrupt counts.
    if (Matches(active->fault, kind, place) && (kind == Kind::kCorrupt || Due(*active))) chosen.push_back(active);
  }
  return chosen;
}

std::vector<std::shared_ptr<ActiveFault>> Injector::All(Kind kind) const {
  std::vector<std::shared_ptr<ActiveFault>> all;
  std::lock_guard lock(mutex_);
  for (const auto& active : active_) {
    if (active->fault.kind == kind) all.push_back(active);
  }
  return all;
}

bool Injector::Strike(ActiveFault& active, const std::string& where) {
  std::lock_guard lock(mutex_);
  if (active.fault.kind == Kind::kCorrupt) {
    // One is enough to end a connection.
    const uint64_t most = active.fault.times != 0 ? active.fault.times : 1;
    if (active.injected >= most || !Due(active)) return false;
  } else if (active.fault.times != 0 && active.injected >= active.fault.times) {
    return false;
  }
  ++active.injected;
  Log(active, where);
  return true;
}

bool Injector::Has(Kind kind, const Place& place) const {
  std::lock_guard lock(mutex_);
  return std::any_of(active_.begin(), active_.end(), [&](const auto& active) { return Matches(active->fault, kind, place); });
}

double Injector::Draw(ActiveFault& fault) {
  std::lock_guard lock(mutex_);
  return Uniform(fault.random);
}

void Injector::AddObserver(std::weak_ptr<PlanObserver> observer) {
  std::lock_guard lock(mutex_);
  std::erase_if(observers_, [](const auto& known) { return known.expired(); });
  observers_.push_back(std::move(observer));
}

int FailureOf(Call call, const char* device, std::optional<uint32_t> qp, std::optional<int> opcode) {
  const bool creates = call != Call::kModifyQp && call != Call::kPostSend && call != Call::kPostRecv && call != Call::kResizeCq;
  if (creates && device != nullptr && DeviceIsDead(device)) return EIO;
  const std::string name = NameIn(CallWords(), static_cast<int>(call));
  std::string where = name + " fails";
  if (qp) where += Format(" on qp 0x%x", *qp);
  if (device != nullptr) where += std::string(" on ") + device;
  const auto fault = Injector::Process().Ask(Kind::kFail, {.qp = qp, .opcode = opcode, .device = device, .call = call}, where);
  return fault ? fault->error : 0;
}

bool PortIsDown(const char* device) {
  if (!g_any_device.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(Devices().mutex);
  return Devices().down.contains(device) || Devices().dead.contains(device);
}

void SetPortDown(const std::string& device, bool down) {
  std::lock_guard lock(Devices().mutex);
  if (down) {
    Devices().down.insert(device);
    g_any_device.store(true);
    g_kinds.fetch_or(kDeviceBit);
  } else {
    Devices().down.erase(device);
  }
}

bool DeviceIsDead(const char* device) {
  if (!g_any_device.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(Devices().mutex);
  return Devices().dead.contains(device);
}

void SetDeviceDead(const std::string& device) {
  std::lock_guard lock(Devices().mutex);
  Devices().dead.insert(device);
  g_any_device.store(true);
  g_kinds.fetch_or(kDeviceBit);
}

}  // namespace weft::faults
