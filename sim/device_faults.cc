#include "sim/device_faults.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/log.h"
#include "sim/rnic.h"
#include "transport/progress_thread.h"

namespace weft::sim {
namespace {

using faults::Injector;
using faults::Kind;

// On the progress thread, before each round of work.
void SleepAsAsked() {
  for (const auto& active : Injector::Process().All(Kind::kSlowProgress)) {
    const faults::Fault& fault = active->fault;
    const double draw = 2 * Injector::Process().Draw(*active) - 1;
    std::this_thread::sleep_for(fault.time + faults::Duration(static_cast<int64_t>(draw * static_cast<double>(fault.jitter.count()))));
  }
}

}  // namespace

void DeviceFaults::Opened(const std::string& device, std::weak_ptr<AsyncSink> sink) {
  std::lock_guard lock(mutex_);
  auto& sinks = sinks_[device];
  std::erase_if(sinks, [](const auto& known) { return known.expired(); });
  sinks.push_back(std::move(sink));
  if (faults::Enabled()) Schedule(device);
}

void DeviceFaults::OnPlanChanged() {
  std::set<std::string> up;
  {
    std::lock_guard lock(mutex_);
    scheduled_.clear();
    up.swap(down_);
    for (const auto& [device, sinks] : sinks_) Schedule(device);
  }
  for (const std::string& device : up) {
    faults::SetPortDown(device, false);
    Tell(device, IBV_EVENT_PORT_ACTIVE);
  }
  const auto slow = Injector::Process().All(Kind::kSlowProgress);
  for (const auto& active : slow) Injector::Process().Strike(*active, "the progress thread sleeps before each round");
  transport::g_progress_pause.store(slow.empty() ? nullptr : &SleepAsAsked, std::memory_order_relaxed);
  rnic_.ApplyFaults();
}

void DeviceFaults::Schedule(const std::string& device) {
  for (const Kind kind : {Kind::kPortDown, Kind::kDeviceFatal}) {
    for (const Active& active : Injector::Process().All(kind)) {
      const faults::Fault& fault = active->fault;
      if (fault.Has(faults::kDevice) && fault.device != device) continue;
      if (!scheduled_.emplace(active.get(), device).second) continue;
      RunAfter(fault.after, [weak = weak_from_this(), device, active, kind] {
        const auto self = weak.lock();
        if (self == nullptr || !self->InForce(active)) return;
        if (kind == Kind::kPortDown) {
          self->PortDown(device, active);
        } else {
          self->DeviceFatal(device, active);
        }
      });
    }
  }
}

bool DeviceFaults::InForce(const Active& active) const {
  const auto all = Injector::Process().All(active->fault.kind);
  return std::find(all.begin(), all.end(), active) != all.end();
}

void DeviceFaults::PortDown(const std::string& device, Active active) {
  const faults::Fault& fault = active->fault;
  if (!Injector::Process().Strike(*active, "the port of " + device + " goes down")) return;
  {
    std::lock_guard lock(mutex_);
    down_.insert(device);
  }
  faults::SetPortDown(device, true);
  rnic_.ApplyFaults();
  Tell(device, IBV_EVENT_PORT_ERR);
  if (!fault.Has(faults::kFor)) return;
  RunAfter(fault.lasts, [weak = weak_from_this(), device, active] {
    if (const auto self = weak.lock(); self != nullptr && self->InForce(active)) self->PortUp(device, active);
  });
}

void DeviceFaults::PortUp(const std::string& device, const Active& active) {
  LogWarning(Format("the port of %s is up again", device.c_str()));
  {
    std::lock_guard lock(mutex_);
    down_.erase(device);
  }
  faults::SetPortDown(device, false);
  rnic_.ApplyFaults();
  Tell(device, IBV_EVENT_PORT_ACTIVE);
  if (active->fault.times <= 1) return;
  RunAfter(active->fault.after, [weak = weak_from_this(), device, active] {
    if (const auto self = weak.lock(); self != nullptr && self->InForce(active)) self->PortDown(device, active);
  });
}

void DeviceFaults::DeviceFatal(const std::string& device, const Active& active) {
  if (faults::DeviceIsDead(device.c_str())) return;
  Injector::Process().Strike(*active, device + " fails for good");
  faults::SetDeviceDead(device);
  Tell(device, IBV_EVENT_DEVICE_FATAL);
  for (const auto& qp : rnic_.QueuePairs()) qp->FailFatally(device);
}

void DeviceFaults::Tell(const std::string& device, ibv_event_type type) {
  std::vector<std::shared_ptr<AsyncSink>> sinks;
  {
    std::lock_guard lock(mutex_);
    for (const auto& weak : sinks_[device]) {
      if (auto sink = weak.lock()) sinks.push_back(std::move(sink));
    }
  }
  for (const auto& sink : sinks) sink->OnAsyncEvent(type, nullptr);
}

void DeviceFaults::RunAfter(transport::Duration delay, std::function<void()> work) {
  transport::Network& network = rnic_.network();
  network.RunAt(network.Now() + delay, std::move(work));
}

}  // namespace weft::sim
