#include "impi/run/ranks_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "impi/entry/hello.h"
#include "impi/run/mpiexec_child.h"
#include "pmi/launch/launcher.h"

namespace weft::impi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTermTime{5000};  // for mpiexec to end the ranks after SIGTERM; after the second one it kills them
constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// mpiexec, when the agents' addresses have come through `gate`, one a line and an empty one at the end. Without them, the job never started.
[[noreturn]] void RunMpiexec(pmi::Options options, int gate, int news) {
  std::string addresses;
  char block[256];
  for (ssize_t count; (count = read(gate, block, sizeof block)) != 0;) {
    if (count > 0) addresses.append(block, static_cast<size_t>(count));
    if (count < 0 && errno != EINTR) break;
  }
  close(gate);
  if (!addresses.ends_with("\n\n")) _exit(1);
  options.first_job_by_host.first = kAgentVariable;
  for (size_t at = 0, end; addresses[at] != '\n'; at = end + 1) {
    end = addresses.find('\n', at);
    options.first_job_by_host.second.push_back(addresses.substr(at, end - at));
  }
  options.on_gone = GonePipe::Teller(news);
  std::exit(pmi::Launcher(options).Run());
}

}  // namespace

Result<RanksProcess, std::string> RanksProcess::Make(pmi::Options options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe to mpiexec: " + std::string(std::strerror(errno));
  Descriptor hers(ends[0]), ours(ends[1]);
  auto news = GonePipe::Open();
  if (!news.ok()) return news.error();
  const auto pid = ForkForMpiexec();
  if (!pid.ok()) return pid.error();
  if (*pid == 0) {
    ours.Close();
    RunMpiexec(std::move(options), hers.Release(), news->writes.get());
  }
  return RanksProcess(*pid, std::move(ours), std::move(news->reads));
}

RanksProcess::~RanksProcess() {
  if (!gate_) return;
  gate_.Close();
  waitpid(pid_, nullptr, 0);
}

std::optional<std::string> RanksProcess::Start(const std::vector<std::string>& agents) {
  signal(SIGCHLD, SIG_DFL);
  sigset_t taken;
  sigemptyset(&taken);
  sigaddset(&taken, SIGCHLD);
  for (const int number : kPassedOn) sigaddset(&taken, number);
  sigprocmask(SIG_SETMASK, &taken, nullptr);
  signals_ = Descriptor(signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_) return "signals cannot be watched: " + std::string(std::strerror(errno));
  std::string lines;
  for (const std::string& agent : agents) lines += agent + "\n";
  lines += "\n";
  const bool told = write(gate_.get(), lines.data(), lines.size()) == static_cast<ssize_t>(lines.size());
  gate_.Close();
  Look();  // it may have ended before the signals were watched
  if (told) return std::nullopt;
  return "mpiexec's process has ended before the ranks were started";
}

void RanksProcess::Look() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD || exit_status_) continue;
    // The terminal sends its signals to all processes of the group, mpiexec among them.
    if (info.ssi_code != SI_KERNEL) kill(pid_, static_cast<int>(info.ssi_signo));
  }
  GonePipe::Read(news_.get(), &gone_);
  int status = 0;
  if (exit_status_ || waitpid(pid_, &status, WNOHANG) != pid_) return;
  exit_status_ = ExitStatusOf(status);
}

void RanksProcess::WaitFor(milliseconds time) {
  const auto end = Clock::now() + time;
  while (!exit_status_) {
    const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
    if (time.count() >= 0 && left.count() <= 0) return;
    pollfd ready{signals_.get(), POLLIN, 0};
    poll(&ready, 1, time.count() < 0 ? -1 : static_cast<int>(left.count()));
    Look();
  }
}

int RanksProcess::Wait() {
  WaitFor(milliseconds(-1));
  return *exit_status_;
}

int RanksProcess::End(milliseconds grace) {
  WaitFor(grace);
  for (const int number : {SIGTERM, SIGTERM, SIGKILL}) {
    if (exit_status_) break;
    kill(pid_, number);
    WaitFor(kTermTime);
  }
  return Wait();
}

}  // namespace weft::impi
