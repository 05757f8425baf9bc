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
#include "pmi/chosen_hosts.h"
#include "pmi/launch/kvs_server.h"
#include "pmi/launch/launcher.h"
#include "pmi/launch/name_server.h"
#include "pmi/launch/options.h"
#include "pmi/launch/proxy.h"
#include "pmi/launch/relay.h"

namespace {

constexpr int kWrongCommandLine = 2;

// A standard descriptor that was closed would be given to the next file that is opened, and programs would write into that. In
// its place: one that fails as a closed one does.
void FillStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
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
  if (const std::string problem = weft::pmi::ChooseHosts(&options.value()); !problem.empty()) {
    std::fprintf(stderr, "mpiexec: %s\n", problem.c_str());
    return kWrongCommandLine;
  }
  for (const std::string& note : options.value().notes) std::fprintf(stderr, "mpiexec: %s\n", note.c_str());
  return weft::pmi::Launcher(options.value()).Run();
}
