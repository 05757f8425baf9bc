#ifndef PMI_CLIENT_H_
#define PMI_CLIENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"
#include "pmi/wire/meaning.h"

namespace weft::pmi {

// PMI, the client's side: the requests of a process to its launcher. Calls block, and any thread may make them; a
// waiting call (Spawn, NodeAttribute) does not delay the others. Without PMI_FD and PMI_PORT in the environment the
// process is a job of one (singleton): Put, Get and Barrier are local, and an operation that needs a launcher starts
// one.
//
// It uses version 1 of PMI. It uses version 2 if WEFT_PMI=2 is set, if the launcher answers that it supports nothing
// else, and under Slurm's pmi2 plugin, whose version 1 lacks functions.
class Client {
 public:
  // The result of Spawn().
  struct Spawned {
    std::string problem;      // a sentence; empty: all processes run
    std::string job_id;       // of the new job, if the launcher tells it
    std::vector<int> errors;  // by process, in the order of the commands; 0: it runs
  };

  // Connects to the launcher at PMI_FD (an inherited descriptor), or at PMI_PORT with PMI_ID, and learns the values
  // below.
  static Result<std::unique_ptr<Client>, PmiError> Connect();
  virtual ~Client() = default;  // closes the connection; call Finalize() before it for an orderly end

  virtual bool is_singleton() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int appnum() const = 0;         // -1: unknown
  virtual int universe_size() const = 0;  // -1: unknown
  virtual const std::string& kvs_name() const = 0;  // also the id of the job
  virtual size_t max_value_length() const = 0;
  // Asks the launcher to report the deaths of ranks of its jobs; past deaths are reported first. `on_death` is called
  // for each rank, from the thread that reads the launcher's messages, and must not call back. `world`: JobSecret::Id()
  // of the secret of another job, in hexadecimal digits, as the launcher sent it; empty: this job. False: the launcher
  // does not support it. Weft's supports it with -disable-auto-cleanup.
  virtual bool WatchDeaths(std::function<void(const std::string& world, int rank)> on_death) { return false; }
  // Reads the launcher's announcements without waiting for more. For a thread that finds fd() readable. False: no more
  // will come.
  virtual bool Hear() { return false; }
  // The local descriptor to the launcher, or -1. It becomes readable (end of file) when the launcher dies.
  virtual int fd() const = 0;
  // Whether another MPI job spawned this one. The `preput` pairs of its Spawn() are then in the key-value space from
  // the start.
  virtual bool spawned() const { return false; }
  virtual int pmi_version() const { return 1; }

  // A returned string tells why the call failed; empty: success.
  virtual std::string Put(const std::string& key, const std::string& value) = 0;
  virtual Result<std::string, PmiError> Get(const std::string& key) = 0;
  virtual std::string Barrier() = 0;
  virtual std::string Finalize() = 0;
  // Tells the launcher to end the job. Returns if the launcher does not support that.
  virtual void Abort(int exit_code, const std::string& message) = 0;

  // Starts a new job from `commands`, whose info keys mpiexec(1) lists. `preput` is in its key-value space from the
  // start. Either all processes run, or none. Returns when they have been started, which is before they leave MPI_Init.
  virtual Spawned Spawn(const std::vector<SpawnCommand>& commands, const KeyValues& preput);

  // The name service of the launcher, for all jobs that share it.
  virtual std::string Publish(const std::string& service, const std::string& port);
  virtual Result<std::string, PmiError> Lookup(const std::string& service);
  virtual std::string Unpublish(const std::string& service);

  // The following functions exist only in PMI version 2. NodeAttribute: nullopt if the attribute was not put; with
  // `wait`, returns only after a process on this host has put it.
  virtual std::string PutNodeAttribute(const std::string& key, const std::string& value);
  virtual Result<std::optional<std::string>, PmiError> NodeAttribute(const std::string& key, bool wait);
  // An attribute of the launcher: PMI_process_mapping or universeSize; also in version 1.
  virtual Result<std::optional<std::string>, PmiError> JobAttribute(const std::string& key);
  // ConnectJob: from now on the two jobs fail together, and GetFrom() reads the other's key-value space. DisconnectJob:
  // they are separate again. `must_copy` (may be null): the launcher does not have the other job's values; a process
  // that got them by GetAll() there must give them to PutAll() here.
  virtual std::string ConnectJob(const std::string& job_id, bool* must_copy = nullptr);
  virtual std::string DisconnectJob(const std::string& job_id);
  // This process no longer needs the job that spawned its own. When all processes of its job have said so, a failure of
  // one job no longer affects the other; in both versions. No effect if the launcher, unlike Weft's, does not support
  // it.
  virtual std::string LeaveSpawner() { return {}; }
  virtual Result<std::string, PmiError> GetFrom(const std::string& job_id, const std::string& key);
  // GetAll: all values of a space, in either version. PutAll: stores them, in version 2.
  virtual Result<KeyValues, PmiError> GetAll(const std::string& job_id);
  virtual std::string PutAll(const std::string& job_id, const KeyValues& values);

  // The following functions exist only in PMI version 1: spaces in addition to the job's own, which GetFrom() and
  // GetAll() can read too. CreateSpace() returns the name of a new space.
  virtual Result<std::string, PmiError> CreateSpace();
  virtual std::string PutInto(const std::string& space, const std::string& key, const std::string& value);
  virtual std::string DestroySpace(const std::string& space);
};

}  // namespace weft::pmi

#endif  // PMI_CLIENT_H_
