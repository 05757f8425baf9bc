#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/settings.h"
#include "verbs/export.h"
#include "verbs/objects.h"

// Device list. Devices are kept for ever, one for each name, so that programs may compare ibv_device pointers of two
// lists and use one after its list was freed.
namespace weft::verbs {
namespace {

class Registry {
 public:
  // The device of `info`, made if it is new, brought up to date if it is not.
  Device* Find(const sim::DeviceInfo& info) {
    std::lock_guard lock(mutex_);
    for (const auto& device : devices_) {
      if (info.name == device->name) {
        device->Update(info);
        return device.get();
      }
    }
    devices_.push_back(std::make_unique<Device>());
    Device* device = devices_.back().get();
    device->info = info;
    device->node_type = info.NodeType();
    device->transport_type = info.Transport();
    snprintf(device->name, sizeof device->name, "%s", info.name.c_str());
    snprintf(device->dev_name, sizeof device->dev_name, "uverbs%zu", devices_.size() - 1);
    snprintf(device->dev_path, sizeof device->dev_path, "/sys/class/infiniband_verbs/%s", device->dev_name);
    snprintf(device->ibdev_path, sizeof device->ibdev_path, "/sys/class/infiniband/%s", device->name);
    return device;
  }

 private:
  std::mutex mutex_;  // guards devices_
  std::vector<std::unique_ptr<Device>> devices_;
};

Registry& DeviceRegistry() {
  static Registry* registry = new Registry;  // not destroyed: a program may use verbs in its exit handlers
  return *registry;
}

// A misspelt setting that is silently ignored misleads, so there are no devices then. Reading the settings has logged
// each.
bool SettingsAreSound() {
  const std::vector<std::string>& problems = ProcessSettingProblems();
  static std::once_flag once;
  std::call_once(once, [&problems] {
    const std::string& wrong = faults::Injector::Process().problem();
    LogLines(wrong);
    if (!problems.empty() || !wrong.empty()) LogWarning("no devices until these settings are corrected or removed from the environment");
  });
  return problems.empty() && faults::Injector::Process().problem().empty();
}

constexpr ibv_gid kNoGid = {};

bool Same(const ibv_gid& a, const ibv_gid& b) { return memcmp(a.raw, b.raw, sizeof a.raw) == 0; }

bool Contains(const std::vector<ibv_gid>& gids, const ibv_gid& gid) {
  return std::any_of(gids.begin(), gids.end(), [&gid](const ibv_gid& other) { return Same(gid, other); });
}

}  // namespace

void Device::Update(sim::DeviceInfo now) {
  std::lock_guard lock(mutex);
  std::vector<ibv_gid> gids = std::move(info.gids);
  std::vector<transport::SocketAddress> addresses = std::move(info.addresses);
  for (size_t i = 0; i < gids.size(); ++i) {
    if (!Contains(now.gids, gids[i])) gids[i] = kNoGid, addresses[i] = {};
  }
  for (size_t i = 0; i < now.gids.size(); ++i) {
    if (Contains(gids, now.gids[i])) continue;
    const auto place = std::find_if(gids.begin(), gids.end(), [](const ibv_gid& gid) { return Same(gid, kNoGid); });
    const size_t index = static_cast<size_t>(place - gids.begin());
    if (index == gids.size()) gids.emplace_back(), addresses.emplace_back();
    gids[index] = now.gids[i];
    addresses[index] = now.addresses[i];
  }
  info = std::move(now);
  info.gids = std::move(gids);
  info.addresses = std::move(addresses);
}

}  // namespace weft::verbs

using weft::verbs::DeviceRegistry;
using weft::verbs::FromPublic;

WEFT_VERBS_API ibv_device** ibv_get_device_list(int* num_devices) {
  if (num_devices != nullptr) *num_devices = 0;
  if (!weft::verbs::SettingsAreSound()) return weft::verbs::Fail<ibv_device*>(EINVAL);
  const std::vector<weft::sim::DeviceInfo> infos = weft::sim::ListDevices();
  auto** list = static_cast<ibv_device**>(calloc(infos.size() + 1, sizeof(ibv_device*)));
  if (list == nullptr) return weft::verbs::Fail<ibv_device*>(ENOMEM);
  for (size_t i = 0; i < infos.size(); ++i) list[i] = DeviceRegistry().Find(infos[i]);
  if (num_devices != nullptr) *num_devices = static_cast<int>(infos.size());
  return list;
}

WEFT_VERBS_API void ibv_free_device_list(ibv_device** list) { free(list); }

WEFT_VERBS_API const char* ibv_get_device_name(ibv_device* device) { return device->name; }

WEFT_VERBS_API __be64 ibv_get_device_guid(ibv_device* device) { return FromPublic(device)->Info().node_guid; }

// The interface's index: as stable as the kernel's index of an RDMA device.
WEFT_VERBS_API int ibv_get_device_index(ibv_device* device) { return FromPublic(device)->Info().interface_index; }
