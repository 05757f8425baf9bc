#include "impi/run/agents_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/close_from.h"
#include "impi/run/mpiexec_child.h"
#include "pmi/launch/launcher.h"

namespace weft::impi {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTermTime{5000};  // for mpiexec to end the agents after SIGTERM; after the second one it kills them
constexpr int kKept = 3;                 // the descriptor of the news

[[noreturn]] void RunMpiexec(pmi::Options options, int news) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  const int above = fcntl(news, F_DUPFD_CLOEXEC, kKept);
  if (above != kKept) dup3(above, kKept, O_CLOEXEC);
  CloseFrom(kKept + 1);
  options.on_gone = GonePipe::Teller(kKept);
  std::exit(pmi::Launcher(options).Run());
}

}  // namespace

Result<AgentsProcess, std::string> AgentsProcess::Start(const pmi::Options& options) {
  auto news = GonePipe::Open();
  if (!news.ok()) return news.error();
  const auto pid = ForkForMpiexec();
  if (!pid.ok()) return pid.error();
  if (*pid == 0) RunMpiexec(options, news->writes.get());
  return AgentsProcess(*pid, std::move(news->reads));
}

AgentsProcess::AgentsProcess(AgentsProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), news_(std::move(other.news_)), gone_(std::move(other.gone_)), exit_status_(other.exit_status_) {}

AgentsProcess::~AgentsProcess() {
  if (pid_ > 0) End(milliseconds(0));
}

void AgentsProcess::Look() {
  if (exit_status_) return;
  const bool open = GonePipe::Read(news_.get(), &gone_);
  int status = 0;
  if (!open && waitpid(pid_, &status, 0) == pid_) exit_status_ = ExitStatusOf(status);
}

void AgentsProcess::WaitFor(milliseconds time) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + time;
  for (auto left = time; !exit_status_; left = std::chrono::ceil<milliseconds>(end - Clock::now())) {
    pollfd ready{news_.get(), POLLIN, 0};
    if (left.count() < 0 || poll(&ready, 1, static_cast<int>(left.count())) == 0) return;
    Look();
  }
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
