// Which client a process gets, by its environment.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

#include "base/host_port.h"
#include "pmi/client.h"
#include "pmi/client/launched.h"
#include "pmi/client/socket.h"

namespace weft::pmi {
namespace {

std::string Quoted(const char* name, const std::string& value) { return std::string(name) + "=" + value; }

class Singleton final : public Client {
 public:
  bool is_singleton() const override { return true; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int appnum() const override { return -1; }
  int universe_size() const override { return -1; }
  const std::string& kvs_name() const override { return name_; }
  size_t max_value_length() const override { return kValueMax - 1; }
  int fd() const override { return -1; }

  std::string Put(const std::string& key, const std::string& value) override {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
    return {};
  }
  Result<std::string, PmiError> Get(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    if (found == values_.end()) return PmiError{"no process put the key " + key};
    return found->second;
  }
  std::string Barrier() override { return {}; }
  std::string Finalize() override { return {}; }
  void Abort(int, const std::string&) override {}

 private:
  const std::string name_ = "singleton_" + std::to_string(getpid());
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

// The decimal number in the environment variable `name`.
Result<int, PmiError> NumberOf(const char* name, const char* needed_by) {
  const char* text = secure_getenv(name);
  if (text == nullptr) return PmiError{std::string(name) + " is not set, but " + needed_by + " is"};
  const std::optional<int> number = ParseInt(text);
  if (!number || *number < 0) return PmiError{Quoted(name, text) + " is not a number of 0 or more"};
  return *number;
}

std::string TextOf(const char* name) {
  const char* text = secure_getenv(name);
  return text == nullptr ? std::string() : text;
}

// What does not depend on how the launcher is reached.
Result<Launched::Place, PmiError> PlaceOf() {
  Launched::Place place;
  place.job_id = TextOf("PMI_JOBID");
  place.spawned = ParseInt(TextOf("PMI_SPAWNED")).value_or(0) != 0;
  // Its pmi2 plugin sets PMI_JOBID, which hydra and our mpiexec do not.
  place.slurm = !place.job_id.empty() && (!TextOf("SLURM_JOB_ID").empty() || !TextOf("SLURM_JOBID").empty() || !TextOf("SLURM_STEP_ID").empty());
  place.version = place.slurm ? 2 : 1;
  if (const std::string wanted = TextOf("WEFT_PMI"); !wanted.empty()) {
    if (wanted != "1" && wanted != "2") return PmiError{Quoted("WEFT_PMI", wanted) + " is not a version of PMI; 1 and 2 are"};
    place.version = wanted == "2" ? 2 : 1;
  }
  if (const std::string path = TextOf("WEFT_PMI_SECRET_FILE"); !path.empty()) {
    std::ifstream file(path);
    if (!std::getline(file, place.secret) || place.secret.empty()) {
      return PmiError{Quoted("WEFT_PMI_SECRET_FILE", path) + " is not a file whose first line is a secret"};
    }
  }
  return place;
}

Result<std::unique_ptr<Client>, PmiError> Start(int fd, Launched::Place place) {
  auto client = std::make_unique<Launched>(fd, std::move(place));
  if (std::string problem = client->Initialise(); !problem.empty()) return PmiError{std::move(problem)};
  return std::unique_ptr<Client>(std::move(client));
}

// PMI_FD: an open descriptor of the launcher's.
Result<std::unique_ptr<Client>, PmiError> ConnectByDescriptor(Launched::Place place) {
  const auto fd = NumberOf("PMI_FD", "PMI_FD");
  if (!fd) return fd.error();
  const auto rank = NumberOf("PMI_RANK", "PMI_FD");
  if (!rank) return rank.error();
  const auto size = NumberOf("PMI_SIZE", "PMI_FD");
  if (!size) return size.error();
  // Closed in programs that this one starts: two that speak on it would take each other's answers.
  if (fcntl(fd.value(), F_SETFD, FD_CLOEXEC) != 0) {
    return PmiError{
        Quoted("PMI_FD", std::to_string(fd.value())) +
        " is not an open descriptor; a program that an MPI process starts needs PMI_FD unset to be a job of its own"};
  }
  place.rank = *rank;
  place.size = *size;
  return Start(*fd, std::move(place));
}

Result<std::unique_ptr<Client>, PmiError> ConnectByPort(const std::string& address, Launched::Place place) {
  const auto pmi_id = NumberOf("PMI_ID", "PMI_PORT");
  if (!pmi_id) return pmi_id.error();
  const auto launcher = ParseHostPort(address);
  if (!launcher) return PmiError{Quoted("PMI_PORT", address) + " is not HOST:PORT"};
  const auto fd = Dial(launcher->host, std::to_string(launcher->port));
  if (!fd) return fd.error();
  place.by_port = true;
  place.rank = *pmi_id;
  return Start(*fd, std::move(place));
}

}  // namespace

Result<std::unique_ptr<Client>, PmiError> Client::Connect() {
  const bool by_descriptor = secure_getenv("PMI_FD") != nullptr;
  const char* address = secure_getenv("PMI_PORT");
  if (!by_descriptor && address == nullptr) return std::unique_ptr<Client>(std::make_unique<Singleton>());
  auto place = PlaceOf();
  if (!place) return place.error();
  return by_descriptor ? ConnectByDescriptor(*std::move(place)) : ConnectByPort(address, *std::move(place));
}

// What a client has that no launcher started: for those who do not say otherwise.
namespace {

std::string Alone(const char* what) { return std::string(what) + " needs a launcher: this process was not started by mpiexec"; }

}  // namespace

Client::Spawned Client::Spawn(const std::vector<SpawnCommand>& commands, const KeyValues&) {
  Spawned spawned{Alone("MPI_Comm_spawn"), {}, {}};
  for (const SpawnCommand& command : commands) {
    spawned.errors.resize(spawned.errors.size() + static_cast<size_t>(command.processes > 0 ? command.processes : 0), 1);
  }
  return spawned;
}
std::string Client::Publish(const std::string& service, const std::string&) { return Alone("to publish a name") + " (service " + service + ")"; }
Result<std::string, PmiError> Client::Lookup(const std::string& service) { return PmiError{Alone("to look up a name") + " (service " + service + ")"}; }
std::string Client::Unpublish(const std::string& service) { return Alone("to unpublish a name") + " (service " + service + ")"; }
std::string Client::PutNodeAttribute(const std::string& key, const std::string&) { return Alone("an attribute") + " (" + key + ")"; }
Result<std::optional<std::string>, PmiError> Client::NodeAttribute(const std::string&, bool) { return std::optional<std::string>(); }
Result<std::optional<std::string>, PmiError> Client::JobAttribute(const std::string&) { return std::optional<std::string>(); }
std::string Client::ConnectJob(const std::string& job_id) { return Alone("to connect a job") + " (" + job_id + ")"; }
std::string Client::DisconnectJob(const std::string& job_id) { return Alone("to disconnect a job") + " (" + job_id + ")"; }
Result<std::string, PmiError> Client::GetFrom(const std::string& job_id, const std::string& key) {
  if (job_id == kvs_name()) return Get(key);
  return PmiError{Alone("another job's key-value space") + " (" + job_id + ")"};
}

}  // namespace weft::pmi
