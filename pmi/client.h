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

// PMI, the client's side: what a process of a job asks of its launcher. Calls block, and any thread may make them: one that waits
// (Spawn, NodeAttribute) does not hold up the others. Without PMI_FD and PMI_PORT in the environment it is a job of one (singleton),
// in which Put, Get and Barrier are local, and what needs a launcher starts one.
//
// It speaks version 1 of PMI, or version 2 where WEFT_PMI=2 says so, where the launcher answers that it knows nothing else, and
// under Slurm's pmi2 plugin, whose version 1 can do less.
class Client {
 public:
  // What became of Spawn().
  struct Spawned {
    std::string problem;      // a sentence; empty: all processes run
    std::string job_id;       // of the new job, where the launcher tells
    std::vector<int> errors;  // by process, in the order of the commands; 0: it runs
  };

  // Connects as PMI_FD (an inherited descriptor) or PMI_PORT and PMI_ID say, and learns what is below.
  static Result<std::unique_ptr<Client>, PmiError> Connect();
  virtual ~Client() = default;  // closes; Finalize() before it for an orderly end

  virtual bool is_singleton() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int appnum() const = 0;         // -1: unknown
  virtual int universe_size() const = 0;  // -1: unknown
  virtual const std::string& kvs_name() const = 0;  // which is the job's id as well
  virtual size_t max_value_length() const = 0;
  // From now on the launcher tells which ranks of its jobs die, those that have died already first: `on_death` is called with each, from whichever
  // thread reads what the launcher says, and may not call back. `world`: of which other job, JobSecret::Id() of its secret in hexadecimal digits, as the
  // launcher gave it; empty: of this one. False: this launcher does not; Weft's does with -disable-auto-cleanup.
  virtual bool WatchDeaths(std::function<void(const std::string& world, int rank)> on_death) { return false; }
  // Reads what the launcher says by itself, without waiting for more: for whoever finds fd() readable. False: nothing more is to be heard.
  virtual bool Hear() { return false; }
  // The local descriptor to the launcher, or -1: readable (end of file) when the launcher died.
  virtual int fd() const = 0;
  // Whether another MPI job spawned this one: the preput pairs of its Spawn() are in the key-value space from the start.
  virtual bool spawned() const { return false; }
  virtual int pmi_version() const { return 1; }

  // Strings that calls return say why it failed; empty: success.
  virtual std::string Put(const std::string& key, const std::string& value) = 0;
  virtual Result<std::string, PmiError> Get(const std::string& key) = 0;
  virtual std::string Barrier() = 0;
  virtual std::string Finalize() = 0;
  // Tells the launcher to end the job; returns if it does not know how.
  virtual void Abort(int exit_code, const std::string& message) = 0;

  // Starts a job of its own from `commands`, whose info keys mpiexec(1) lists; `preput` is in its key-value space from the start. All
  // processes run, or none does. Returns when they have been started: not when they are through MPI_Init.
  virtual Spawned Spawn(const std::vector<SpawnCommand>& commands, const KeyValues& preput);

  // The name service of the launcher, for all jobs that share one.
  virtual std::string Publish(const std::string& service, const std::string& port);
  virtual Result<std::string, PmiError> Lookup(const std::string& service);
  virtual std::string Unpublish(const std::string& service);

  // PMI version 2 alone has the following. An attribute that nobody put: nullopt, or with `wait` not before somebody on this host did.
  virtual std::string PutNodeAttribute(const std::string& key, const std::string& value);
  virtual Result<std::optional<std::string>, PmiError> NodeAttribute(const std::string& key, bool wait);
  // The launcher's: PMI_process_mapping and universeSize, in version 1 too.
  virtual Result<std::optional<std::string>, PmiError> JobAttribute(const std::string& key);
  // From here on the jobs are one as to failures, and GetFrom() reads its key-value space; from there on they are two again. `must_copy` (null:
  // who cares): the launcher does not have the other's values; one who got them by GetAll() there gives them by PutAll() here.
  virtual std::string ConnectJob(const std::string& job_id, bool* must_copy = nullptr);
  virtual std::string DisconnectJob(const std::string& job_id);
  // This process has nothing more to do with the job that spawned its own: once all processes of its job have said so, a failure of one of
  // the two is not the other's, in either version. Nothing happens where the launcher, unlike Weft's, has no word for it.
  virtual std::string LeaveSpawner() { return {}; }
  virtual Result<std::string, PmiError> GetFrom(const std::string& job_id, const std::string& key);
  // All of a space, in either version, and what PutAll() takes in version 2.
  virtual Result<KeyValues, PmiError> GetAll(const std::string& job_id);
  virtual std::string PutAll(const std::string& job_id, const KeyValues& values);

  // PMI version 1 alone has spaces beside the job's own, which GetFrom() and GetAll() read, too. CreateSpace() gives the name of a new one.
  virtual Result<std::string, PmiError> CreateSpace();
  virtual std::string PutInto(const std::string& space, const std::string& key, const std::string& value);
  virtual std::string DestroySpace(const std::string& space);
};

}  // namespace weft::pmi

#endif  // PMI_CLIENT_H_
