#include "sim/device/port_monitor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace weft::sim {
namespace {

bool SameGids(const DeviceInfo& a, const DeviceInfo& b) {
  return std::equal(a.gids.begin(), a.gids.end(), b.gids.begin(), b.gids.end(),
                    [](const ibv_gid& x, const ibv_gid& y) { return std::memcmp(x.raw, y.raw, sizeof x.raw) == 0; });
}

const DeviceInfo* Find(const std::vector<DeviceInfo>& devices, const std::string& name) {
  const auto it = std::find_if(devices.begin(), devices.end(), [&](const DeviceInfo& device) { return device.name == name; });
  return it == devices.end() ? nullptr : &*it;
}

DeviceInfo Gone(DeviceInfo device) {
  device.up = false;
  device.gids.clear();
  device.addresses.clear();
  return device;
}

// `now`, and after it what was known and is gone, so that it is recognised when it comes back.
std::vector<DeviceInfo> WithGone(std::vector<DeviceInfo> now, const std::vector<DeviceInfo>& before) {
  for (const DeviceInfo& device : before) {
    if (Find(now, device.name) == nullptr) now.push_back(Gone(device));
  }
  return now;
}

}  // namespace

std::vector<ibv_event_type> PortEvents(const DeviceInfo& before, const DeviceInfo& now) {
  std::vector<ibv_event_type> events;
  if (before.up != now.up) events.push_back(now.up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
  if (!SameGids(before, now)) events.push_back(IBV_EVENT_GID_CHANGE);
  return events;
}

// Outlives the monitor if the network is calling it.
class PortMonitor::Handler : public transport::ReadyHandler {
 public:
  explicit Handler(PortMonitor* monitor) : monitor_(monitor) {}
  void OnReady(transport::Interest) override {
    std::lock_guard lock(mutex_);
    if (monitor_ != nullptr) monitor_->OnNews();
  }
  void Detach() {
    std::lock_guard lock(mutex_);
    monitor_ = nullptr;
  }

 private:
  std::mutex mutex_;  // held while the monitor works, so that it is not destroyed meanwhile
  PortMonitor* monitor_;
};

PortMonitor::~PortMonitor() {
  if (handler_ == nullptr) return;
  network_.Unwatch(watch_);
  handler_->Detach();
}

void PortMonitor::Observe(const std::string& device, std::weak_ptr<PortObserver> observer) {
  std::lock_guard lock(mutex_);
  if (!started_) Start();
  if (news_ == nullptr) return;
  std::erase_if(subscriptions_, [](const Subscription& s) { return s.observer.expired(); });
  subscriptions_.push_back({device, std::move(observer)});
}

void PortMonitor::Start() {
  started_ = true;
  auto news = transport::InterfaceEvents::Open();
  if (!news) {
    if (TraceEnabled()) Trace(Format("cannot watch the interfaces (errno %d): there will be no port events", news.error()));
    return;
  }
  current_ = known_ = ListDevices();  // after the socket is open, so that no change is missed
  handler_ = std::make_shared<Handler>(this);
  watch_ = network_.WatchDescriptor((*news)->fd(), handler_);
  if (watch_ != 0) news_ = std::move(*news);
}

bool PortMonitor::Refresh() {
  if (!news_->Drain()) return false;
  current_ = ListDevices();
  return true;
}

std::optional<DeviceInfo> PortMonitor::Current(const std::string& device) {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (getpid() == owner_) lock.lock();
  if (!lock.owns_lock() || news_ == nullptr) {
    const std::vector<DeviceInfo> now = ListDevices();
    const DeviceInfo* found = Find(now, device);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  }
  if (Refresh()) {
    untold_ = true;  // and the descriptor is readable no more
    network_.Post([handler = handler_] { handler->OnReady({}); });
  }
  const DeviceInfo* found = Find(current_, device);
  if (found == nullptr) return std::nullopt;
  DeviceInfo info = *found;
  info.up = info.UpNow();
  return info;
}

void PortMonitor::OnNews() {
  std::vector<std::pair<std::shared_ptr<PortObserver>, DeviceInfo>> told;
  std::vector<std::vector<ibv_event_type>> events;
  {
    std::lock_guard lock(mutex_);
    if (!Refresh() && !untold_) return;
    untold_ = false;
    const std::vector<DeviceInfo> before = std::exchange(known_, {});
    known_ = WithGone(current_, before);
    for (const DeviceInfo& now : known_) {
      const DeviceInfo* old = Find(before, now.name);
      const auto changes = PortEvents(old != nullptr ? *old : Gone(now), now);
      if (changes.empty()) continue;
      for (const Subscription& subscription : subscriptions_) {
        if (subscription.device != now.name) continue;
        if (auto observer = subscription.observer.lock()) {
          told.emplace_back(std::move(observer), now);
          events.push_back(changes);
        }
      }
    }
  }
  for (size_t i = 0; i < told.size(); ++i) told[i].first->OnPortChange(told[i].second, events[i]);
}

}  // namespace weft::sim
