#include "pmi/client/singleton.h"

#include <unistd.h>

#include <utility>

#include "pmi/client/own_launcher.h"

namespace weft::pmi {

Singleton::Singleton() : name_("singleton_" + std::to_string(getpid())) {}

Result<Launched*, PmiError> Singleton::Launcher() {
  const std::lock_guard lock(mutex_);
  if (launched_ != nullptr) return launched_.get();
  const auto fd = StartOwnLauncher();
  if (!fd) return fd.error();
  Launched::Place place;
  place.rank = 0;
  place.size = 1;
  place.version = 2;
  auto launched = std::make_unique<Launched>(fd.value(), nullptr, std::move(place));
  if (std::string problem = launched->Initialise(); !problem.empty()) return PmiError{std::move(problem)};
  launched_ = std::move(launched);
  return launched_.get();
}

std::string Singleton::Put(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  values_[key] = value;
  return {};
}

Result<std::string, PmiError> Singleton::Get(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) return PmiError{"no process put the key " + key};
  return found->second;
}

// The launcher, if there is one, may end when all that was spawned has ended.
std::string Singleton::Finalize() {
  const std::lock_guard lock(mutex_);
  return launched_ == nullptr ? std::string() : launched_->Finalize();
}

Client::Spawned Singleton::Spawn(const std::vector<SpawnCommand>& commands, const KeyValues& preput) {
  const auto launcher = Launcher();
  if (launcher) return launcher.value()->Spawn(commands, preput);
  Spawned spawned{launcher.error().message, {}, {}};
  for (const SpawnCommand& command : commands) {
    spawned.errors.resize(spawned.errors.size() + static_cast<size_t>(command.processes > 0 ? command.processes : 0), 1);
  }
  return spawned;
}

std::string Singleton::Publish(const std::string& service, const std::string& port) {
  const auto launcher = Launcher();
  return launcher ? launcher.value()->Publish(service, port) : launcher.error().message;
}

Result<std::string, PmiError> Singleton::Lookup(const std::string& service) {
  const auto launcher = Launcher();
  if (!launcher) return launcher.error();
  return launcher.value()->Lookup(service);
}

std::string Singleton::Unpublish(const std::string& service) {
  const auto launcher = Launcher();
  return launcher ? launcher.value()->Unpublish(service) : launcher.error().message;
}

std::string Singleton::PutNodeAttribute(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  attributes_[key] = value;
  return {};
}

Result<std::optional<std::string>, PmiError> Singleton::NodeAttribute(const std::string& key, bool wait) {
  const std::lock_guard lock(mutex_);
  if (const auto found = attributes_.find(key); found != attributes_.end()) return std::optional(found->second);
  if (wait) return PmiError{"no other process can put the attribute " + key + ": this process is alone on its host"};
  return std::optional<std::string>();
}

std::string Singleton::ConnectJob(const std::string& job_id, bool* must_copy) {
  const auto launcher = Launcher();
  return launcher ? launcher.value()->ConnectJob(job_id, must_copy) : launcher.error().message;
}

std::string Singleton::DisconnectJob(const std::string& job_id) {
  const auto launcher = Launcher();
  return launcher ? launcher.value()->DisconnectJob(job_id) : launcher.error().message;
}

Result<std::string, PmiError> Singleton::GetFrom(const std::string& job_id, const std::string& key) {
  if (job_id == name_) return Get(key);
  const auto launcher = Launcher();
  if (!launcher) return launcher.error();
  return launcher.value()->GetFrom(job_id, key);
}

}  // namespace weft::pmi
