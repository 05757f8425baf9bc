#ifndef PMI_CLIENT_LAUNCHED_H_
#define PMI_CLIENT_LAUNCHED_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pmi/client.h"
#include "pmi/client/conversation.h"

namespace weft::pmi {

// A process that was started by a launcher.
class Launched final : public Client {
 public:
  // The information in the environment.
  struct Place {
    std::optional<int> rank;  // PMI_RANK or PMI_ID; with PMI_PORT in PMI-1, the launcher tells it
    std::optional<int> size;
    std::string job_id;       // PMI_JOBID
    bool spawned = false;     // PMI_SPAWNED
    bool by_port = false;
    bool slurm = false;       // Slurm's launcher, which does not support thrid
    int version = 1;          // the initial one
    std::string secret;       // for a launcher that requires a proof of it: in PMI-2, or
    bool secured = false;     // by TLS: PMI_SOCKTYPE=OpenSSL
  };

  // Owns `fd`. `tls`: set if place.secured.
  Launched(int fd, std::unique_ptr<TlsStream> tls, Place place) : talk_(fd, std::move(tls)), place_(std::move(place)) {}
  // Call it first. Returns a description of the error, or empty.
  std::string Initialise();
  // Opens an out-of-band channel to the same launcher over a second connection, `fd`, which it owns. `signal`: the
  // signal that accompanies each message, or NONE. Returns a description of the error, or empty. Call it after
  // Initialise().
  std::string Listen(int fd, std::unique_ptr<TlsStream> tls, const std::string& signal);

  bool is_singleton() const override { return false; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int appnum() const override { return appnum_; }
  int universe_size() const override { return universe_size_; }
  const std::string& kvs_name() const override { return kvs_name_; }
  size_t max_value_length() const override { return static_cast<size_t>(limits_.value - 1); }
  int fd() const override { return talk_.fd(); }
  bool spawned() const override { return spawned_; }
  int pmi_version() const override { return talk_.version(); }

  bool WatchDeaths(std::function<void(const std::string& world, int rank)> on_death) override;
  bool Hear() override { return talk_.Hear(); }

  std::string Put(const std::string& key, const std::string& value) override;
  Result<std::string, PmiError> Get(const std::string& key) override { return GetFrom(kvs_name_, key); }
  std::string Barrier() override { return AskFor(ask::Fence{}, "refuses the barrier"); }
  std::string Finalize() override { return AskFor(ask::Finalize{}, "refuses to finalize"); }
  void Abort(int exit_code, const std::string& message) override;
  Spawned Spawn(const std::vector<SpawnCommand>& commands, const KeyValues& preput) override;
  std::string Publish(const std::string& service, const std::string& port) override;
  Result<std::string, PmiError> Lookup(const std::string& service) override;
  std::string Unpublish(const std::string& service) override;
  std::string PutNodeAttribute(const std::string& key, const std::string& value) override;
  Result<std::optional<std::string>, PmiError> NodeAttribute(const std::string& key, bool wait) override;
  Result<std::optional<std::string>, PmiError> JobAttribute(const std::string& key) override;
  std::string ConnectJob(const std::string& job_id, bool* must_copy) override;
  std::string DisconnectJob(const std::string& job_id) override;
  std::string LeaveSpawner() override;
  Result<std::string, PmiError> GetFrom(const std::string& job_id, const std::string& key) override;
  Result<KeyValues, PmiError> GetAll(const std::string& job_id) override;
  std::string PutAll(const std::string& job_id, const KeyValues& values) override;
  Result<std::string, PmiError> CreateSpace() override;
  std::string PutInto(const std::string& space, const std::string& key, const std::string& value) override;
  std::string DestroySpace(const std::string& space) override;

 private:
  std::string Greet();
  // Sends this process's identity in PMI-2. The answer tells whether the launcher accepts it.
  Result<Answered, PmiError> Introduce(Conversation& talk) const;
  std::string InitialiseText();
  std::string InitialiseCounted();
  std::string ReadMaxes();
  std::string ReadNumber(const Request& request, int* number);
  std::string ReadJobId();

  // Empty, or "the launcher " + `refusal` + the reason.
  std::string AskFor(const Request& request, const std::string& refusal);
  std::string CheckKey(const std::string& key) const;
  std::string CheckValue(const std::string& value) const;
  // Checks a text against the limits of a field on the wire.
  std::string CheckText(const char* what, const std::string& text) const;
  std::string CheckSpawn(const std::vector<SpawnCommand>& commands, const KeyValues& preput) const;

  Conversation talk_;
  const Place place_;
  int rank_ = -1;
  int size_ = 0;
  int appnum_ = -1;
  int universe_size_ = -1;
  bool spawned_ = false;
  Limits limits_{kKvsNameMax, kKeyMax, kValueMax};
  std::string kvs_name_;
};

}  // namespace weft::pmi

#endif  // PMI_CLIENT_LAUNCHED_H_
