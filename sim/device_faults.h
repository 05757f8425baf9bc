#ifndef SIM_DEVICE_FAULTS_H_
#define SIM_DEVICE_FAULTS_H_

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "faults/injector.h"
#include "sim/queues/completion_queue.h"
#include "transport/network.h"

namespace weft::sim {

class Rnic;

// Faults that occur by themselves, not in a call of the program: port_down, device_fatal, slow_progress. Also tells the
// queue pairs about changes of the fault plan. Owned by the RNIC. Thread safe.
class DeviceFaults final : public faults::PlanObserver, public std::enable_shared_from_this<DeviceFaults> {
 public:
  explicit DeviceFaults(Rnic& rnic) : rnic_(rnic) {}

  // A program opened the device; `sink` gets the device's events.
  void Opened(const std::string& device, std::weak_ptr<AsyncSink> sink);
  void OnPlanChanged() override;

 private:
  using Active = std::shared_ptr<faults::ActiveFault>;

  void Schedule(const std::string& device);  // requires mutex_
  bool InForce(const Active& active) const;
  void PortDown(const std::string& device, Active active);
  void PortUp(const std::string& device, const Active& active);
  void DeviceFatal(const std::string& device, const Active& active);
  void Tell(const std::string& device, ibv_event_type type);
  void RunAfter(transport::Duration delay, std::function<void()> work);

  Rnic& rnic_;
  std::mutex mutex_;  // guards the members below
  std::map<std::string, std::vector<std::weak_ptr<AsyncSink>>> sinks_;
  std::set<std::pair<const faults::ActiveFault*, std::string>> scheduled_;
  std::set<std::string> down_;
};

}  // namespace weft::sim

#endif  // SIM_DEVICE_FAULTS_H_
