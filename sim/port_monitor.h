#ifndef SIM_PORT_MONITOR_H_
#define SIM_PORT_MONITOR_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/device.h"
#include "transport/interface_events.h"
#include "transport/network.h"

namespace weft::sim {

// Hears of a device's port. Called on the network's thread, no locks held.
class PortObserver {
 public:
  virtual ~PortObserver() = default;
  // `now`: the device as it is; one whose interface is gone is down and has no addresses. `events`, in order:
  // IBV_EVENT_PORT_ACTIVE or IBV_EVENT_PORT_ERR, IBV_EVENT_GID_CHANGE; at least one.
  virtual void OnPortChange(const DeviceInfo& now, const std::vector<ibv_event_type>& events) = 0;
};

// What a program is told when the device changes from `before` to `now`.
std::vector<ibv_event_type> PortEvents(const DeviceInfo& before, const DeviceInfo& now);

// Follows the network interfaces behind the devices, from the first Observe() on. Where the kernel tells nothing of them (no netlink), there
// are no events. Thread safe.
class PortMonitor {
 public:
  explicit PortMonitor(transport::Network& network) : network_(network) {}
  ~PortMonitor();

  // The observer hears of changes from now on, until it is destroyed.
  void Observe(const std::string& device, std::weak_ptr<PortObserver> observer);

 private:
  class Handler;
  struct Subscription {
    std::string device;
    std::weak_ptr<PortObserver> observer;
  };

  // Requires mutex_.
  void Start();
  void OnNews();

  transport::Network& network_;
  std::mutex mutex_;  // guards what follows
  bool started_ = false;
  std::unique_ptr<transport::InterfaceEvents> news_;
  std::shared_ptr<Handler> handler_;
  transport::WatchId watch_ = 0;
  std::vector<DeviceInfo> known_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace weft::sim

#endif  // SIM_PORT_MONITOR_H_
