#ifndef IMPI_RUN_AGENTS_PROCESS_H_
#define IMPI_RUN_AGENTS_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "pmi/launch/options.h"

namespace weft::impi {

// mpiexec in a process of its own that starts the agents of a client with several hosts, one on each. The agents are a job apart from the ranks: they start
// before and end after them, and options for the ranks (labels, limits of time, bindings) do not concern them. It has no standard input, and
// ignores signals from the terminal: those are for the ranks, and the agents follow. (In a process group of its own, ssh could not ask for a password.) If this process dies, it gets SIGTERM.
class AgentsProcess {
 public:
  // The child keeps nothing of this process but standard output and standard error. Why not: a sentence.
  static Result<AgentsProcess, std::string> Start(const pmi::Options& options);
  AgentsProcess(AgentsProcess&& other) noexcept;
  // Ends it, if it has not ended.
  ~AgentsProcess();

  // Can be read when an agent has ended, or mpiexec has or is about to: then Look.
  int fd() const { return news_.get(); }
  void Look();
  // The agents that have ended, or were lost with their host, by their numbers; Look has seen it.
  const std::vector<int>& gone() const { return gone_; }
  // Once Look has seen that it has ended: as a shell has it, 128 + N if signal N killed it.
  std::optional<int> exit_status() const { return exit_status_; }
  // Waits for `grace` until it ends by itself, and then ends it.
  void End(std::chrono::milliseconds grace);

 private:
  AgentsProcess(pid_t pid, Descriptor news) : pid_(pid), news_(std::move(news)) {}
  void WaitFor(std::chrono::milliseconds time);

  pid_t pid_;  // -1: moved from
  Descriptor news_;  // a pipe: the numbers of agents, of 4 bytes each; it ends a moment before the process does
  std::vector<int> gone_;
  std::optional<int> exit_status_;
};

}  // namespace weft::impi

#endif  // IMPI_RUN_AGENTS_PROCESS_H_
