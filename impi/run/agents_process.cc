#include "impi/run/agents_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/close_from.h"
#include "impi/run/mpiexec_child.h"
#include "pmi/launch/launcher.h"

namespace weft::impi {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTermTime{5000};  // for mpiexec to end the agents after SIGTERM; after the second one it kills them
constexpr int kKept = 3;                 // the descriptor whose end says that this process has ended

[[noreturn]] void RunMpiexec(const pmi::Options& options, int end) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  const int above = fcntl(end, F_DUPFD_CLOEXEC, kKept);
  if (above != kKept) dup3(above, kKept, O_CLOEXEC);
  CloseFrom(kKept + 1);
  std::exit(pmi::Launcher(options).Run());
}

}  // namespace

Result<AgentsProcess, std::string> AgentsProcess::Start(const pmi::Options& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe to mpiexec: " + std::string(std::strerror(errno));
  Descriptor ours(ends[0]), hers(ends[1]);
  const auto pid = ForkForMpiexec();
  if (!pid.ok()) return pid.error();
  if (*pid == 0) RunMpiexec(options, hers.get());
  return AgentsProcess(*pid, std::move(ours));
}

AgentsProcess::AgentsProcess(AgentsProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), end_(std::move(other.end_)), exit_status_(other.exit_status_) {}

AgentsProcess::~AgentsProcess() {
  if (pid_ > 0) End(milliseconds(0));
}

// The pipe ends a moment before the process does.
void AgentsProcess::Look() {
  pollfd ended{end_.get(), POLLIN, 0};
  int status = 0;
  if (exit_status_ || poll(&ended, 1, 0) != 1 || waitpid(pid_, &status, 0) != pid_) return;
  exit_status_ = ExitStatusOf(status);
}

void AgentsProcess::WaitFor(milliseconds time) {
  if (exit_status_) return;
  pollfd ready{end_.get(), POLLIN, 0};
  poll(&ready, 1, static_cast<int>(time.count()));
  Look();
}

void AgentsProcess::End(milliseconds grace) {
  WaitFor(grace);
  for (const int number : {SIGTERM, SIGTERM, SIGKILL}) {
    if (exit_status_) return;
    kill(pid_, number);
    WaitFor(kTermTime);
  }
}

}  // namespace weft::impi
