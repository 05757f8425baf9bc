#ifndef IMPI_RUN_RANKS_PROCESS_H_
#define IMPI_RUN_RANKS_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "pmi/launch/options.h"

namespace weft::impi {

inline constexpr std::chrono::milliseconds kOwnDeath{5000};  // for mpiexec to end the job itself when one of its ranks has died

// mpiexec in a process of its own, beside the agent: it starts the ranks of this client, reads standard input and writes standard output. It is made before any
// connection, so that it holds none of them, and waits until the ranks may start. If this process dies, it gets SIGTERM.
class RanksProcess {
 public:
  // Why not: a sentence. `options` with the action kRun.
  static Result<RanksProcess, std::string> Make(pmi::Options options);
  RanksProcess(RanksProcess&&) = default;
  // If the ranks were not started, it ends the process.
  ~RanksProcess();

  // Starts the ranks. `agents`: by host of mpiexec's placement, the address of its agent, for the environment of its ranks. From now on, signals that end this process or are for its ranks come by fd(), and are
  // passed on to mpiexec, unless the terminal has sent them to it as well. Why not: a sentence.
  std::optional<std::string> Start(const std::vector<std::string>& agents);
  // After Start. When it can be read: Look.
  int fd() const { return signals_.get(); }
  void Look();
  // The last rank of this client that has ended by itself: the one for which mpiexec ended the job, if it did. Look has seen it.
  std::optional<int> last_gone() const { return gone_.empty() ? std::nullopt : std::optional(gone_.back()); }
  // When it has ended: as a shell has it, 128 + N if signal N killed it.
  std::optional<int> exit_status() const { return exit_status_; }
  // Waits until mpiexec has ended, without limit. Returns its exit status.
  int Wait();
  // The job has failed. Waits for `grace` until mpiexec ends by itself, and then ends it. Returns its exit status.
  int End(std::chrono::milliseconds grace);

 private:
  RanksProcess(pid_t pid, Descriptor gate, Descriptor news) : pid_(pid), gate_(std::move(gate)), news_(std::move(news)) {}
  // Until it has ended, or the time is over (negative: no limit).
  void WaitFor(std::chrono::milliseconds time);

  pid_t pid_;
  Descriptor gate_;     // it waits at the other end for the address
  Descriptor news_;  // GonePipe
  std::vector<int> gone_;
  Descriptor signals_;
  std::optional<int> exit_status_;
};

}  // namespace weft::impi

#endif  // IMPI_RUN_RANKS_PROCESS_H_
