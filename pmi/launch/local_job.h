#ifndef PMI_LAUNCH_LOCAL_JOB_H_
#define PMI_LAUNCH_LOCAL_JOB_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/job_secret.h"
#include "pmi/launch/binding.h"
#include "pmi/launch/connection.h"
#include "pmi/launch/event_poller.h"
#include "pmi/launch/frame.h"
#include "pmi/launch/spawn.h"
#include "pmi/server/server.h"

namespace weft::pmi {

// The ranks of one job on this host, from kStart until nothing of the job is left there.
class LocalJob final : public Server::Owner {
 public:
  // The proxy that the job belongs to, which must outlive it.
  class Proxy {
   public:
    virtual ~Proxy() = default;
    virtual EventPoller& poller() = 0;
    virtual bool has_room() const = 0;  // for more output to mpiexec
    virtual void Tell(const Frame& frame) = 0;
    // EnterFence: all ranks on this host are in the job's barrier. OnRankEnded: one of them has ended.
    virtual void EnterFence(int job, KeyValues put) = 0;
    virtual void OnRankEnded(int job) = 0;
    // All processes that it has started, except proxies below it and their processes.
    virtual std::vector<pid_t> Descendants() const = 0;
    virtual std::string OwnAddressTowardsMpiexec() const = 0;
    virtual JobSecret SecretOf(int job) const = 0;
    virtual const Server::Space* SpaceOf(const std::string& job_id) const = 0;
    // Whether ranks of another job run on this host; the number of ranks of all jobs here.
    virtual bool RunsOthersThan(const LocalJob* job) const = 0;
    virtual size_t RanksRunning() const = 0;
  };

  LocalJob(int number, Proxy* proxy) : number_(number), proxy_(proxy) {}

  using Clock = std::chrono::steady_clock;
  using milliseconds = std::chrono::milliseconds;

  // Default time from SIGTERM to SIGKILL.
  static constexpr milliseconds kGrace{2000};

  // Starts the first of its ranks, or reports that they cannot be started. While starting(), the owner calls
  // GoOnStarting() in each round. Between the calls the proxy handles messages of mpiexec, which may end the job.
  void Start(StartOrder order);
  bool starting() const { return starting_.has_value(); }
  void GoOnStarting();
  int number() const { return number_; }
  bool running() const { return running_ != 0 || starting(); }
  // running, or about to be started
  size_t ranks_running() const { return running_ + (starting_ ? starting_->order.ranks.size() - starting_->next : 0); }
  std::vector<pid_t> Leaders() const;
  const Server* server() const { return server_.get(); }

  void WatchOutputs();
  void Ended(pid_t pid, int status);
  void CheckWhetherStuck();
  void TakeAnswer(const Frame& frame);
  void EndFence(const KeyValues& put);
  // of the ranks that died; of job `job`, which is this one or another
  void TellDeaths(int job, const std::vector<int>& ranks);
  void GiveInput(const std::string& bytes);
  void SignalAll(int number);
  void End(milliseconds grace);
  std::optional<Clock::time_point> kill_at() const { return kill_at_; }
  // Sends SIGKILL to all of them once the time has come.
  void KillIfDue();
  // Its ranks have ended. Processes that they started and left behind are ended with the job. True: nothing is left.
  bool ClearOrphans();

  // Server::Owner
  void Send(int rank, const std::string& bytes) override;
  bool HasRoom(int rank) const override;
  void OnAbort(int number, int exit_code, const std::string& message) override;
  void OnMisuse(int number, const std::string& what) override;
  void OnFence(KeyValues put) override;
  void OnQuestion(int rank, const std::string& ticket, const Request& request) override;
  const Server::Space* SpaceOf(const std::string& job_id) override;
  void Signal(int rank, const std::string& name) override;

 private:
  // A rank on this host.
  struct Rank {
    int number = 0;
    Spawned files;
    bool running = true;
    bool output_waits = false;  // output stays in the rank's pipes, which are not watched
    bool spoke_last = false;    // it has aborted the job, or broken the PMI protocol
    Outbox to_pmi;
    Outbox to_input;
    bool input_ends = false;  // after to_input was written
  };

  // The ranks that are still to be started.
  struct Starting {
    StartOrder order;
    // a process forked between Bind() and Unbind() is bound to the same CPUs as this thread
    std::unique_ptr<Binder> binder;
    size_t others = 0;               // number of ranks of other jobs, which have the first places
    size_t next = 0;                 // index in order.ranks
    std::vector<int> signals;        // signals that the earlier ranks have got
  };

  std::string MakeBinder(const StartOrder& order, std::unique_ptr<Binder>* binder);
  bool StartNext();
  bool StartRank(const StartOrder& order, size_t local_rank);
  bool WatchRank(Rank& rank);
  void WatchOutput(Rank& rank);
  void CloseFile(int* fd);
  void Forward(Rank& rank, int* fd, FrameType type, size_t most = 65536);
  void ForwardLastWords(Rank& rank);
  void SpeakLast(int number);
  void ReadPmi(Rank& rank);
  void WritePmi(Rank& rank);
  void GoOn(Rank& rank);
  void WriteInput(Rank& rank);
  void CloseInput(Rank& rank);
  void Tell(FrameType type, int number = 0, std::string payload = {});
  Rank* Find(int number) const;
  std::vector<pid_t> Remaining() const;

  const int number_;
  Proxy* const proxy_;
  std::unique_ptr<Server> server_;
  std::optional<Starting> starting_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::unordered_map<int, Rank*> by_number_;
  bool fence_complete_ = false;  // on the only host: EndFence() must follow
  bool stuck_ = false;
  bool whole_job_ = false;  // all ranks are on this host
  size_t running_ = 0;
  std::optional<Clock::time_point> kill_at_;  // set by End()
  bool orphans_told_ = false;                 // the processes that the ranks left behind have got SIGTERM
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_LOCAL_JOB_H_
