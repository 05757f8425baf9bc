#ifndef PMI_LAUNCH_LAUNCHER_H_
#define PMI_LAUNCH_LAUNCHER_H_

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/job_secret.h"
#include "base/result.h"
#include "pmi/error.h"
#include "pmi/launch/file_pattern.h"
#include "pmi/launch/input.h"
#include "pmi/launch/job_plan.h"
#include "pmi/launch/name_link.h"
#include "pmi/server/names.h"
#include "pmi/launch/options.h"
#include "pmi/launch/output.h"
#include "pmi/launch/output_files.h"
#include "pmi/launch/poller.h"
#include "pmi/launch/proxy_tree.h"
#include "pmi/launch/tree_growth.h"
#include "pmi/launch/user_names.h"

namespace weft::pmi {

// The main part of mpiexec, in one thread: runs the job of its command line and the jobs that ranks spawn, until all
// have ended. Takes over the process's signals, children and standard descriptors.
class Launcher {
 public:
  explicit Launcher(const Options& options);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Returns the exit status of mpiexec.
  int Run();

 private:
  using Clock = std::chrono::steady_clock;

  // stdout or stderr.
  struct Stream {
    Stream(int fd_, OutputFiles::Stream which_, const std::string& pattern_, OutputMerger::Label label)
        : fd(fd_), which(which_), pattern(pattern_), merger(std::move(label)) {}
    int fd;
    OutputFiles::Stream which;
    std::string pattern;  // of the files for the ranks' output; empty: write to fd
    OutputMerger merger;
    bool failed = false;
  };

  // One proxy. It exists as long as mpiexec lives.
  struct Host {
    std::string name;
    ProxyTree::Branch* branch = nullptr;  // the branch that leads to it
    bool is_local = false;
    bool open = true;  // the proxy exists
  };

  // The rank that waits for the result of a spawn.
  struct Asker {
    size_t host;
    int job;
    int rank;
    std::string ticket;
  };

  struct Job {
    int number = 0;
    std::string id;                 // the name of its key-value space
    std::vector<std::string> programs;
    JobPlan plan;                   // without the orders after they were sent
    std::vector<size_t> hosts;      // those of the plan, as indices of hosts_
    bool awaits_hosts = true;       // proxies are being started for it
    std::vector<bool> open;         // by host of the plan: processes of the job may exist there
    KeyValues put;                  // by the hosts that have entered the barrier
    size_t put_bytes = 0;           // size of `put` in frames
    size_t in_fence = 0;            // number of these hosts
    size_t started = 0;             // number of hosts on which all its ranks run
    int ended = 0;                  // number of ranks
    std::vector<int> exit_statuses; // by rank, as in a shell; -1: not known
    int first_gone = -1;            // the first rank that ended
    std::vector<int> dead;          // ranks whose death was reported to the remaining ranks
    bool ending = false;
    bool meets_spawner = false;     // in MPI_Init, where the job that spawned it waits
    bool never_was = false;         // its spawn failed: exits of the ranks that were started are not failures
    std::optional<Asker> asker;     // until it is known whether all ranks run
    std::pair<int, int> spawner{-1, -1};  // the job and the rank that asked for it
    std::optional<Clock::time_point> give_up_at;  // deadline for the proxies
    std::set<int> connected;        // jobs that end when this one fails, and vice versa
    std::set<int> left;             // ranks that have left the job that spawned theirs

    bool done() const { return !awaits_hosts && std::find(open.begin(), open.end(), true) == open.end(); }
  };

  // Connects to the name server, if there is one. Returns a description of the error, or empty. It waits for the
  // answers, and must be called before TakeSignals().
  std::string ReachNameServer();
  void TakeSignals();
  // `problem`: why the job cannot be started, or empty.
  void StartFirstJob(const std::string& problem);
  void WatchAll();
  int MillisecondsToSleep() const;
  void Tick();
  bool finished() const;

  void OnBranch(ProxyTree::Branch& branch, short events);
  void OnFrame(size_t host, const Frame& frame);
  void OnRankFrame(Job& job, size_t host, const Frame& frame);
  void OnExited(Job& job, int rank, const ExitReport& report);
  void OnDeath(Job& job, const std::vector<int>& ranks, int exit_code, const std::string& how);
  void TellDeaths(Job& job, const std::vector<int>& ranks);
  void TellOwner(const Job& job, const std::vector<int>& ranks) const;
  void OnHostLost(size_t host);
  void OnFence(Job& job, const Frame& frame);
  void OnStuck(Job& job, int rank);
  static void CloseHost(Job& job, size_t host);
  // Ranks on the host that are not known to have ended.
  static std::vector<int> RunningOn(const Job& job, size_t host);
  void OnSignal();
  void ReapChildren();
  void PassOn(int number);
  void OnInput();
  void OnOutput(const Job& job, size_t host, Stream& stream, int rank, const std::string& bytes);
  void FinishOutput(const Job& job, Stream& stream, int rank);
  FileUser UserOf(const Job& job, size_t host, int rank) const;
  OutputMerger::Label LabelWanted() const;
  void ShowExitStatuses(const Job& job);
  void WriteStream(Stream& stream);

  // Requests of ranks to mpiexec (launcher_questions.cc).
  void OnQuestion(Job& job, size_t host, const Frame& frame);
  void AnswerTo(const Asker& asker, const Request& request, const Answer& answer);
  Answer AnswerNames(const Request& request, int job);
  void AskNames(const Asker& asker, const Request& request);
  void OnNames(short events);
  void LoseNames();
  void ForgetNamesOf(int job);
  void StartSpawn(const Asker& asker, const ask::Spawn& spawn);
  void OnStarted(Job& job);
  void FailSpawn(Job& job, const std::string& why);
  Answer LeaveJob(Job& job, int rank, const std::string& job_id);

  // Hosts of jobs, and the proxies on them (launcher_hosts.cc). A job has its hosts when each of them has a proxy;
  // other jobs go on meanwhile.
  void AwaitHosts(Job& job);
  void StartGrowth();
  void StepGrowth();
  void EndGrowth();
  void OnHostsThere(Job& job);
  void OnHostsMissing(Job& job, const LaunchError& error);
  // The indices of the hosts in hosts_. If hosts are missing, their names are stored in `*missing`.
  std::vector<size_t> HostsNamed(const std::vector<std::string>& names, std::vector<std::string>* missing) const;

  Job& AddJob(int number, JobPlan plan);
  // Sends the orders. Returns a description of the error, or empty.
  std::string SendOrders(Job& job);

  // Ends the job and the jobs connected with it, once: reports why, and makes sure that every rank ends. `message`
  // empty: reports nothing.
  void EndJob(Job& job, int exit_code, const std::string& message, std::chrono::milliseconds grace);
  void EndAllJobs(int exit_code, const std::string& message, std::chrono::milliseconds grace);
  void EndOne(Job& job, std::chrono::milliseconds grace);
  std::set<int> ConnectedWith(const Job& job) const;
  void ForgetDoneJobs();
  // Prints the traffic of the proxies when all jobs have ended (launcher_profile.cc).
  void ShowMessages();
  bool all_ending() const;
  void SendTo(const Job& job, const Frame& frame);
  void SendTo(const Host& host, const Frame& frame);
  void FinishChildren();
  void Say(const std::string& message);
  std::string NameOf(const Job& job, int rank) const;
  Job* Find(int number);

  const Options options_;
  const std::vector<std::string> environment_;
  const std::string directory_;
  const JobSecret secret_ = options_.secret.value_or(JobSecret::Random());
  NameService names_;                    // used if there is no name server
  UserNames user_names_{UserNames::DirectoryOfUser()};
  std::unique_ptr<NameLink> name_link_;  // to the name server of options_.name_file; null after it was lost
  std::map<std::string, std::pair<Asker, Request>> name_questions_;  // requests that it has not answered, by ticket
  std::map<int, std::set<std::string>> published_;                   // names published there or in user_names_, by job
  unsigned next_name_ticket_ = 1;
  ProxyTree tree_;
  std::vector<Host> hosts_;  // by their numbers in tree_
  std::deque<int> wait_for_growth_;     // jobs that need hosts without a proxy; growth_ is for the first one
  std::unique_ptr<TreeGrowth> growth_;  // one at a time, because the next one may need the same hosts
  GrowOrder growth_order_;
  std::map<int, Job> jobs_;  // jobs that have not ended, by number
  int next_job_ = 1;
  int universe_size_ = -1;
  Input input_;
  Stream output_;
  Stream error_output_;
  OutputFiles files_;
  std::map<size_t, Profile> profiles_;  // of hosts that have answered
  Poller poller_;
  int signals_ = -1;
  int times_interrupted_ = 0;
  std::optional<int> exit_code_;  // of the first failure
  std::optional<Clock::time_point> time_out_at_;
  Clock::time_point look_at_{};  // next check whether hosts are still there
  std::optional<Clock::time_point> give_up_at_;  // deadline for the readers of our output as well
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_LAUNCHER_H_
