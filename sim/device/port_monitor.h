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

  // The device as it is now; none if its interface is gone. Lists the interfaces, which takes some 20 system calls for each, only when the
  // kernel told of a change since the last call.
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
  // Takes the kernel's news; whether there was any. Requires mutex_ and news_.
  bool Refresh();

  transport::Network& network_;
  const pid_t owner_ = getpid();  // the child of a fork may query, too; the news are its parent's
  std::mutex mutex_;  // guards what follows
  bool started_ = false;
  std::unique_ptr<transport::InterfaceEvents> news_;
  std::shared_ptr<Handler> handler_;
  transport::WatchId watch_ = 0;
  std::vector<DeviceInfo> current_;  // by the last news
  bool untold_ = false;              // current_ is newer than known_
  std::vector<DeviceInfo> known_;    // what observers know
  std::vector<Subscription> subscriptions_;
};

}  // namespace weft::sim

#endif  // SIM_DEVICE_PORT_MONITOR_H_
