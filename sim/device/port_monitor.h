#ifndef SIM_DEVICE_PORT_MONITOR_H_
#define SIM_DEVICE_PORT_MONITOR_H_

#include <unistd.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sim/device/device.h"
#include "transport/interface_events.h"
#include "transport/network.h"

namespace weft::sim {

// Receives changes of a device's port. Called on the network's thread, with no lock held.
class PortObserver {
 public:
  virtual ~PortObserver() = default;
  // `now`: the current state of the device; if its interface is gone, it is down and has no addresses. `events`: at
  // least one of IBV_EVENT_PORT_ACTIVE or IBV_EVENT_PORT_ERR, and IBV_EVENT_GID_CHANGE, in order.
  virtual void OnPortChange(const DeviceInfo& now, const std::vector<ibv_event_type>& events) = 0;
};

// The events for a program when the device changes from `before` to `now`.
std::vector<ibv_event_type> PortEvents(const DeviceInfo& before, const DeviceInfo& now);

// Follows the network interfaces of the devices, from the first Observe() on. If the kernel does not report changes (no
// netlink), there are no events. Thread safe.
class PortMonitor {
 public:
  explicit PortMonitor(transport::Network& network) : network_(network) {}
  ~PortMonitor();

  // The observer receives changes from now on, until it is destroyed.
  void Observe(const std::string& device, std::weak_ptr<PortObserver> observer);

  // The current state of the device; none if its interface is gone. Lists the interfaces only if the kernel has
  // reported a change since the last call, because that takes some 20 system calls for each interface.
  std::optional<DeviceInfo> Current(const std::string& device);

 private:
  class Handler;
  struct Subscription {
    std::string device;
    std::weak_ptr<PortObserver> observer;
  };

  // Requires mutex_.
  void Start();
  void OnNews();
  // Reads the kernel's events. Returns whether there were any. Requires mutex_ and news_.
  bool Refresh();

  transport::Network& network_;
  const pid_t owner_ = getpid();  // the child of a fork may query, too, but the events are its parent's
  std::mutex mutex_;  // guards the members below
  bool started_ = false;
  std::unique_ptr<transport::InterfaceEvents> news_;
  std::shared_ptr<Handler> handler_;
  transport::WatchId watch_ = 0;
  std::vector<DeviceInfo> current_;  // as of the last event
  bool untold_ = false;              // current_ is newer than known_
  std::vector<DeviceInfo> known_;    // the state that observers know
  std::vector<Subscription> subscriptions_;
};

}  // namespace weft::sim

#endif  // SIM_DEVICE_PORT_MONITOR_H_
