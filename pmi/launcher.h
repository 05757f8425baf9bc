#ifndef PMI_LAUNCHER_H_
#define PMI_LAUNCHER_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/job_secret.h"
#include "pmi/input.h"
#include "pmi/job_plan.h"
#include "pmi/names.h"
#include "pmi/options.h"
#include "pmi/output.h"
#include "pmi/poller.h"
#include "pmi/remote_start.h"

namespace weft::pmi {

// mpiexec at work: one job from start to end, in one thread. Takes over the process's signals, children and standard descriptors.
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
    Stream(int fd_, const char* name_, bool label) : fd(fd_), name(name_), merger(label) {}
    int fd;
    const char* name;
    OutputMerger merger;
    bool failed = false;
  };

  struct Host {
    ProxyLink link;
    bool open = true;  // the proxy is there and has processes to watch
  };

  void TakeSignals();
  void StartJob();
  void WatchAll();
  int MillisecondsToSleep() const;
  void Tick();
  bool finished() const;

  void OnHost(Host& host, short events);
  void OnFrame(Host& host, const Frame& frame);
  void OnExited(int rank, const ExitReport& report);
  void OnRankFrame(const Host& host, const Frame& frame);
  void OnName(Host& host, const Frame& frame);
  void OnHostLost(Host& host);
  void OnFence(const Frame& frame);
  void OnStuck(int rank);
  void OnSignal();
  void PassOn(int number);
  void OnInput();
  void WriteStream(Stream& stream);

  // Ends the job, once: says why, and sees to the end of every rank. `message` empty: says nothing.
  void EndJob(int exit_code, const std::string& message, std::chrono::milliseconds grace);
  void SendToAll(const Frame& frame);
  void FinishChildren();
  void Say(const std::string& message);
  std::string NameOf(int rank) const;

  const Options options_;
  const JobSecret secret_ = JobSecret::Random();
  JobPlan plan_;
  NameService names_;
  KeyValues put_;        // by the hosts that are in the barrier
  size_t in_fence_ = 0;  // their number
  std::vector<Host> hosts_;
  int ended_ = 0;        // ranks
  int first_gone_ = -1;  // the first rank that ended
  Input input_;
  Stream output_;
  Stream error_output_;
  Poller poller_;
  int signals_ = -1;
  int times_interrupted_ = 0;
  std::optional<int> exit_code_;  // of the first failure
  bool ending_ = false;
  std::optional<Clock::time_point> time_out_at_;
  std::optional<Clock::time_point> give_up_at_;  // when proxies and readers of our output have had their time
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCHER_H_
