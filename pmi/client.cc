// What a client has that nothing starts jobs for, and no names: for those who do not say otherwise.
#include "pmi/client.h"

namespace weft::pmi {
namespace {

std::string Alone(const char* what) { return std::string(what) + " needs a launcher"; }

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
std::string Client::ConnectJob(const std::string& job_id, bool*) { return Alone("to connect a job") + " (" + job_id + ")"; }
std::string Client::DisconnectJob(const std::string& job_id) { return Alone("to disconnect a job") + " (" + job_id + ")"; }
Result<KeyValues, PmiError> Client::GetAll(const std::string& job_id) { return PmiError{Alone("a whole key-value space") + " (" + job_id + ")"}; }
std::string Client::PutAll(const std::string& job_id, const KeyValues&) { return Alone("to copy a key-value space") + " (" + job_id + ")"; }
Result<std::string, PmiError> Client::CreateSpace() { return PmiError{Alone("a new key-value space")}; }
std::string Client::PutInto(const std::string& space, const std::string&, const std::string&) { return Alone("a key-value space of one's own") + " (" + space + ")"; }
std::string Client::DestroySpace(const std::string& space) { return Alone("a key-value space of one's own") + " (" + space + ")"; }
Result<std::string, PmiError> Client::GetFrom(const std::string& job_id, const std::string& key) {
  if (job_id == kvs_name()) return Get(key);
  return PmiError{Alone("another job's key-value space") + " (" + job_id + ")"};
}

}  // namespace weft::pmi
