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

// mpiexec at work, in one thread: the job of its command line and those that ranks spawn, until all have ended. Takes over the process's signals, children and standard descriptors.
class Launcher {
 public:
  explicit Launcher(const Options& options);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // The exit status of mpiexec.
  int Run();

 private:
  using Clock = std::chrono::steady_clock;

  // One of stdout and stderr.
  struct Stream {
    Stream(int fd_, OutputFiles::Stream which_, const std::string& pattern_, OutputMerger::Label label)
        : fd(fd_), which(which_), pattern(pattern_), merger(std::move(label)) {}
    int fd;
    OutputFiles::Stream which;
    std::string pattern;  // of the files where the ranks' output goes; empty: to fd
    OutputMerger merger;
    bool failed = false;
  };

  // One proxy, for as long as mpiexec lives.
  struct Host {
    std::string name;
    ProxyTree::Branch* branch = nullptr;  // which leads to it
    bool is_local = false;
    bool open = true;  // the proxy is there
  };

  // Who waits to hear whether a spawn went well.
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
    JobPlan plan;                   // without the orders, once they are sent
    std::vector<size_t> hosts;      // of the plan, as indices of hosts_
    bool awaits_hosts = true;       // proxies are being started for it
    std::vector<bool> open;         // by host of the plan: processes of the job may be there
    KeyValues put;                  // by the hosts that are in the barrier
    size_t put_bytes = 0;           // of it, in frames
    size_t in_fence = 0;            // their number
    size_t started = 0;             // hosts on which all its ranks run
    int ended = 0;                  // ranks
    std::vector<int> exit_statuses; // by rank, as shells have them; -1: not known
    int first_gone = -1;            // the first rank that ended
    std::vector<int> dead;          // of which the ranks that go on were told
    bool ending = false;
    bool meets_spawner = false;     // in MPI_Init, where those who spawned it wait
    bool never_was = false;         // its spawn failed: what happens to those that were started is nobody's failure
    std::optional<Asker> asker;     // until it is known whether all ranks run
    std::pair<int, int> spawner{-1, -1};  // the job and the rank that asked for it
    std::optional<Clock::time_point> give_up_at;  // when proxies have had their time
    std::set<int> connected;        // jobs that end when this one fails, and the other way round
    std::set<int> left;             // ranks that have left the job that spawned theirs

    bool done() const { return !awaits_hosts && std::find(open.begin(), open.end(), true) == open.end(); }
  };

  // Where there is one. Why it cannot be used, or empty. Waits for its answers: comes before TakeSignals().
  std::string ReachNameServer();
  void TakeSignals();
  // `problem`: what keeps the job from being started, or empty.
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
  void OnHostLost(size_t host);
  void OnFence(Job& job, const Frame& frame);
  void OnStuck(Job& job, int rank);
  static void CloseHost(Job& job, size_t host);
  // Ranks on the host that have not ended, as far as is known.
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

  // What ranks ask of mpiexec (launcher_questions.cc).
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

  // Hosts of jobs, and proxies on them (launcher_hosts.cc). A job has its hosts when there is a proxy on each; the others go on meanwhile.
  void AwaitHosts(Job& job);
  void StartGrowth();
  void StepGrowth();
  void EndGrowth();
  void OnHostsThere(Job& job);
  void OnHostsMissing(Job& job, const LaunchError& error);
  // The index of each in hosts_, or of those that are missing the names.
  std::vector<size_t> HostsNamed(const std::vector<std::string>& names, std::vector<std::string>* missing) const;

  Job& AddJob(int number, JobPlan plan);
  // Sends the orders; empty, or why they cannot be.
  std::string SendOrders(Job& job);

  // Ends the job and those connected with it, once: says why, and sees to the end of every rank. `message` empty: says nothing.
  void EndJob(Job& job, int exit_code, const std::string& message, std::chrono::milliseconds grace);
  void EndAllJobs(int exit_code, const std::string& message, std::chrono::milliseconds grace);
  void EndOne(Job& job, std::chrono::milliseconds grace);
  std::set<int> ConnectedWith(const Job& job) const;
  void ForgetDoneJobs();
  // What was said to and by proxies, when all jobs have ended (launcher_profile.cc).
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
  const JobSecret secret_ = JobSecret::Random();
  NameService names_;                    // where there is no name server
  UserNames user_names_{UserNames::DirectoryOfUser()};
  std::unique_ptr<NameLink> name_link_;  // to that of options_.name_file; null after it was lost
  std::map<std::string, std::pair<Asker, Request>> name_questions_;  // that it has not answered, by ticket
  std::map<int, std::set<std::string>> published_;                   // there, or in user_names_, by job
  unsigned next_name_ticket_ = 1;
  ProxyTree tree_;
  std::vector<Host> hosts_;  // by the numbers that they have in tree_
  std::deque<int> wait_for_growth_;     // jobs that need hosts without a proxy, the first of which growth_ is for
  std::unique_ptr<TreeGrowth> growth_;  // one at a time, since its hosts may be the next one's, too
  GrowOrder growth_order_;
  std::map<int, Job> jobs_;  // that have not ended, by number
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
  Clock::time_point look_at_{};  // whether hosts are still there
  std::optional<Clock::time_point> give_up_at_;  // when readers of our output have had their time, too
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_LAUNCHER_H_
