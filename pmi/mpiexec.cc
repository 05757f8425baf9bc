// mpiexec: starts MPI jobs. See docs/man/mpiexec.1.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/version.h"
#include "pmi/launch/host_lookup.h"
#include "pmi/launch/kvs_server.h"
#include "pmi/launch/launcher.h"
#include "pmi/launch/name_server.h"
#include "pmi/launch/options.h"
#include "pmi/launch/proxy.h"
#include "pmi/launch/relay.h"
#include "pmi/launch/remote_shell.h"
#include "pmi/slurm/allocation.h"

namespace {

constexpr int kWrongCommandLine = 2;

// A standard descriptor that was closed would be given to the next file that is opened, and programs would write into that. In
// its place: one that fails as a closed one does.
void FillStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// The hosts that a batch system gave this process, where the command line names none, and its way to start programs on them. Why they
// cannot be understood, or empty.
std::string TakeAllocation(weft::pmi::Options* options) {
  if (!options->takes_allocation) return {};
  auto hosts = weft::pmi::slurm::HostsOfAllocation(secure_getenv);
  if (!hosts) return options->hosts.empty() ? hosts.error().message : std::string();
  if (hosts.value().empty()) return {};
  if (options->hosts.empty()) options->hosts = std::move(hosts).value();
  if (!options->launcher) options->launcher = weft::pmi::RemoteShell::Slurm();
  return TooManyRanks(*options);
}

// Where -skip-launch-node wants it: hosts without this one. Why there are none, or empty.
std::string LeaveThisHostOut(weft::pmi::Options* options) {
  if (!options->skips_this_host) return {};
  std::vector<std::string> names;
  for (const weft::pmi::HostSlots& host : options->hosts) names.push_back(host.name);
  const auto facts = weft::pmi::LookUpHosts(names);
  size_t at = 0;
  std::erase_if(options->hosts, [&](const weft::pmi::HostSlots&) { return facts[at++].is_this; });
  return options->hosts.empty() ? "-skip-launch-node: only this host is named; name others with -hosts or -f" : "";
}

weft::pmi::KvsServerSettings KvsServerOf(const weft::pmi::Options& options) {
  const auto ports = options.kvs_port == 0 ? options.ports : weft::pmi::PortRange{options.kvs_port, options.kvs_port};
  return {*options.programs.back().ranks, ports, options.interface, options.secret_file, options.secured, options.time_out};
}

// Those that a parent blocked would not end this process while it reads files and looks up hosts; later it takes them itself.
void UnblockSignals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  FillStandardDescriptors();
  UnblockSignals();
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 1 && words[0] == "--proxy") return weft::pmi::RemoteProxyMain();
  if (words.size() == 2 && words[0] == "--relay") return weft::pmi::RelayMain(words[1]);
  if (words.size() == 2 && words[0] == "--singleton") words = weft::pmi::BecomeLauncherOf(words[1]);

  auto options = weft::pmi::ParseOptions(words, secure_getenv);
  if (!options) {
    std::fprintf(stderr, "mpiexec: %s\n", options.error().message.c_str());
    return kWrongCommandLine;
  }
  switch (options.value().action) {
    case weft::pmi::Options::Action::kHelp:
      return std::fputs(weft::pmi::HelpText().c_str(), stdout) < 0 || std::fflush(stdout) != 0;
    case weft::pmi::Options::Action::kVersion:
      return std::printf("mpiexec (Weft) %s\n", std::string(weft::Version()).c_str()) < 0 || std::fflush(stdout) != 0;
    case weft::pmi::Options::Action::kNameServer:
      return weft::pmi::NameServerMain(options.value().name_file);
    case weft::pmi::Options::Action::kKvsServer:
      return weft::pmi::KvsServerMain(KvsServerOf(options.value()));
    case weft::pmi::Options::Action::kRun:
      break;
  }
  if (const std::string problem = TakeAllocation(&options.value()); !problem.empty()) {
    std::fprintf(stderr, "mpiexec: %s\n", problem.c_str());
    return kWrongCommandLine;
  }
  if (const std::string problem = LeaveThisHostOut(&options.value()); !problem.empty()) {
    std::fprintf(stderr, "mpiexec: %s\n", problem.c_str());
    return kWrongCommandLine;
  }
  for (const std::string& note : options.value().notes) std::fprintf(stderr, "mpiexec: %s\n", note.c_str());
  return weft::pmi::Launcher(options.value()).Run();
}
