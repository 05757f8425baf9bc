#ifndef PMI_CLIENT_SINGLETON_H_
#define PMI_CLIENT_SINGLETON_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pmi/client.h"
#include "pmi/client/launched.h"

namespace weft::pmi {

// A process that was not started by a launcher: a job of one. Operations that need a launcher start one
// (own_launcher.h).
class Singleton final : public Client {
 public:
  Singleton();

  bool is_singleton() const override { return true; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int appnum() const override { return -1; }
  int universe_size() const override { return -1; }
  const std::string& kvs_name() const override { return name_; }
  size_t max_value_length() const override { return kValueMax - 1; }
  int fd() const override { return -1; }

  std::string Put(const std::string& key, const std::string& value) override;
  Result<std::string, PmiError> Get(const std::string& key) override;
  std::string Barrier() override { return {}; }
  std::string Finalize() override;
  void Abort(int, const std::string&) override {}
  Spawned Spawn(const std::vector<SpawnCommand>& commands, const KeyValues& preput) override;
  std::string Publish(const std::string& service, const std::string& port) override;
  Result<std::string, PmiError> Lookup(const std::string& service) override;
  std::string Unpublish(const std::string& service) override;
  std::string PutNodeAttribute(const std::string& key, const std::string& value) override;
  Result<std::optional<std::string>, PmiError> NodeAttribute(const std::string& key, bool wait) override;
  Result<std::optional<std::string>, PmiError> JobAttribute(const std::string&) override { return std::optional<std::string>(); }
  std::string ConnectJob(const std::string& job_id, bool* must_copy) override;
  std::string DisconnectJob(const std::string& job_id) override;
  Result<std::string, PmiError> GetFrom(const std::string& job_id, const std::string& key) override;

 private:
  // This process as the only rank of the first job of its own launcher, which is started if necessary. Lives as long as
  // this object.
  Result<Launched*, PmiError> Launcher();

  const std::string name_;
  std::mutex mutex_;  // guards the members below
  std::map<std::string, std::string> values_;
  std::map<std::string, std::string> attributes_;
  std::unique_ptr<Launched> launched_;
};

}  // namespace weft::pmi

#endif  // PMI_CLIENT_SINGLETON_H_
