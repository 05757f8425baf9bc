#ifndef PMI_LAUNCH_LOCAL_JOB_H_
#define PMI_LAUNCH_LOCAL_JOB_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/job_secret.h"
#include "pmi/launch/binding.h"
#include "pmi/launch/connection.h"
#include "pmi/launch/event_poller.h"
#include "pmi/launch/frame.h"
#include "pmi/launch/spawn.h"
#include "pmi/server/server.h"

namespace weft::pmi {

// The ranks of one job on this host. From kStart until nothing of it is left.
class LocalJob final : public Server::Owner {
 public:
  // The proxy that it is of, which outlives it.
  class Proxy {
   public:
    virtual ~Proxy() = default;
    virtual EventPoller& poller() = 0;
    virtual bool has_room() const = 0;  // for more output on the way to mpiexec
    virtual void Tell(const Frame& frame) = 0;
    // All ranks here are in the job's barrier; one of them has ended.
    virtual void EnterFence(int job, KeyValues put) = 0;
    virtual void OnRankEnded(int job) = 0;
    // All processes that it started but those of proxies below it.
    virtual std::vector<pid_t> Descendants() const = 0;
    virtual std::string OwnAddressTowardsMpiexec() const = 0;
    virtual JobSecret SecretOf(int job) const = 0;
    virtual const Server::Space* SpaceOf(const std::string& job_id) const = 0;
    // Whether ranks of another job run here, and how many of all.
    virtual bool RunsOthersThan(const LocalJob* job) const = 0;
    virtual size_t RanksRunning() const = 0;
  };

  LocalJob(int number, Proxy* proxy) : number_(number), proxy_(proxy) {}

  using Clock = std::chrono::steady_clock;
  using milliseconds = std::chrono::milliseconds;

  // From SIGTERM to SIGKILL when nobody says otherwise.
  static constexpr milliseconds kGrace{2000};

  // The first of its ranks, or the news that they cannot be started. While starting(), its owner calls GoOnStarting() in each round: between two
  // of them the proxy hears what mpiexec says, which may be the job's end.
  void Start(StartOrder order);
  bool starting() const { return starting_.has_value(); }
  void GoOnStarting();
  int number() const { return number_; }
  bool running() const { return running_ != 0 || starting(); }
  size_t ranks_running() const { return running_ + (starting_ ? starting_->order.ranks.size() - starting_->next : 0); }  // or about to
  std::vector<pid_t> Leaders() const;
  const Server* server() const { return server_.get(); }

  void WatchOutputs();
  void Ended(pid_t pid, int status);
  void CheckWhetherStuck();
  void TakeAnswer(const Frame& frame);
  void EndFence(const KeyValues& put);
  void TellDeaths(int job, const std::vector<int>& ranks);  // which died; of that job, this or another
  void GiveInput(const std::string& bytes);
  void SignalAll(int number);
  void End(milliseconds grace);
  std::optional<Clock::time_point> kill_at() const { return kill_at_; }
  // SIGKILL for all, once it is time.
  void KillIfDue();
  // Its ranks have ended: what they started and left ends with the job. Whether nothing is left.
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
    bool output_waits = false;  // in the rank's pipes: they are not watched
    bool spoke_last = false;    // it has aborted the job, or misused PMI
    Outbox to_pmi;
    Outbox to_input;
    bool input_ends = false;  // behind to_input
  };

  // Ranks that are yet to be started.
  struct Starting {
    StartOrder order;
    std::unique_ptr<Binder> binder;  // what is forked here is bound as this thread is, between Bind() and Unbind()
    size_t others = 0;               // ranks of other jobs, which have the first places
    size_t next = 0;                 // of order.ranks
    std::vector<int> signals;        // that the earlier ones were sent
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
  bool fence_complete_ = false;  // on the only host: EndFence() is due
  bool stuck_ = false;
  bool whole_job_ = false;  // all ranks are on this host
  size_t running_ = 0;
  std::optional<Clock::time_point> kill_at_;  // after End()
  bool orphans_told_ = false;                 // what the ranks left behind has been sent SIGTERM
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_LOCAL_JOB_H_
