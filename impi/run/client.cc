#include "impi/run/client.h"

#include <signal.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/file_limit.h"
#include "impi/entry/welcome.h"
#include "impi/job/job.h"
#include "impi/run/carry.h"
#include "impi/run/connect.h"
#include "impi/run/membership.h"
#include "impi/run/own_host.h"
#include "impi/run/ranks_process.h"
#include "impi/run/several_hosts.h"
#include "pmi/chosen_hosts.h"
#include "pmi/launch/host_lookup.h"
#include "pmi/launch/placement.h"
#include "pmi/launch/sockets.h"
#include "transport/socket_address.h"

namespace weft::impi {
namespace {

using std::chrono::milliseconds;
template <typename T>
using OrWhyNot = Result<T, std::string>;

constexpr int kWrongCommandLine = 2;

// The ranks that mpiexec starts. Why not: what is wrong with its command line.
OrWhyNot<pmi::Options> OptionsOfMpiexec(const std::vector<std::string>& words) {
  auto parsed = pmi::ParseOptions(words, secure_getenv);
  if (!parsed) return parsed.error().message;
  pmi::Options options = std::move(parsed).value();
  if (options.action != pmi::Options::Action::kRun) return "'" + words[0] + "' starts no ranks; give it to mpiexec";
  if (std::string problem = pmi::ChooseHosts(&options); !problem.empty()) return problem;
  return options;
}

int CountOf(const pmi::Options& options) {
  const std::vector<int> ranks = RanksOfPrograms(options);
  return std::accumulate(ranks.begin(), ranks.end(), 0);
}

// Whether all ranks run where this process does: then it is their agent itself.
bool IsThisHost(const pmi::Options& options, const pmi::Placement& placement) {
  return options.hosts.empty() || (placement.hosts.size() == 1 && pmi::LookUpHosts(placement.hosts)[0].is_this);
}

// A client with one host, this one.
class Client {
 public:
  Client(const ClientOptions& options, int ranks, RanksProcess process) : options_(options), ranks_(ranks), process_(std::move(process)) {}

  OrWhyNot<int> Run(const pmi::Options& mpiexec) {
    if (options_.addresses.size() > 1) return "-address names " + std::to_string(options_.addresses.size()) + " addresses, and the ranks run on 1 host";
    const auto server = ServerAddress(options_);
    if (!server.ok()) return server.error();
    const auto address = OwnHostId(options_.addresses.empty() ? "" : options_.addresses[0], mpiexec.interface, *server, {});
    if (!address.ok()) return address.error();
    int port = 0;
    Descriptor listener(pmi::Listen(&port, mpiexec.ports));
    if (!listener) return "cannot listen for other clients: " + DescribeShortage(errno);
    auto member = BecomeMember(options_, *server, {{*address, static_cast<uint32_t>(port), options_.ack_mark, options_.high_water, NamesOf(*address, port, ranks_)}});
    if (!member.ok()) return member.error();
    link_ = std::move(member->link);
    return RunJob(member->job, member->lam_clients, listener);
  }

 private:
  OrWhyNot<int> RunJob(const Job& job, uint32_t lam_clients, Descriptor& listener) {
    const HostRank host = FirstHost(job);
    auto hosts = ConnectHosts(job, {.host = host}, listener, Warn, {link_->fd(), [this] { return link_->LookAtServer(); }});
    if (!hosts.ok()) return hosts.error();
    listener.Close();
    auto agent = AgentListener::Open();
    if (!agent.ok()) return agent.error();
    Carrier::Setup setup{.agent = AgentFor(job, host, lam_clients), .ranks = std::vector<int32_t>(static_cast<size_t>(ranks_)), .welcome = {}, .warn = Warn};
    std::iota(setup.ranks.begin(), setup.ranks.end(), 0);
    setup.welcome = Welcome::Serialize(job.self(), job.clients(), link_->dialogue().told(), setup.ranks, lam_clients);
    const std::string agents_address = agent->address;
    Carrier carrier(job, std::move(setup), std::move(*hosts), std::move(*agent));
    if (auto why = process_.Start({agents_address})) return *why;
    Look(carrier);
    carrier.Watch(process_.fd(), [&] { Look(carrier); });
    carrier.Watch(link_->fd(), [&] {
      if (const auto why = link_->LookAtServer()) carrier.Fail(*why);
    });
    const auto why = carrier.Run();
    if (!why) return Leave();
    Say(*why);
    return carrier.FailedByProcess() ? FailAtOnce(carrier) : FailLater(carrier);
  }

  void Look(Carrier& carrier) {
    process_.Look();
    const auto status = process_.exit_status();
    if (status) carrier.NoMoreProcesses(" ended without MPI_Init (mpiexec's exit status is " + std::to_string(*status) + "); all ranks of a client have to call it");
  }

  int Leave() {
    const int status = process_.Wait();
    link_->Leave();
    return status;
  }

  // The server and the other clients name the client that leaves first. So one whose own process is at fault leaves at once, the server first. One that has heard
  // of a failure elsewhere stays until its ranks have ended, and the others hear of it from where it was.
  int FailAtOnce(Carrier& carrier) {
    link_.reset();
    carrier.Close();
    const int status = process_.End(kOwnDeath);
    return status != 0 ? status : 1;
  }
  int FailLater(Carrier& carrier) {
    carrier.CloseProcesses();
    process_.End(milliseconds(0));
    return 1;
  }

  const ClientOptions& options_;
  const int ranks_;
  RanksProcess process_;
  std::unique_ptr<ServerLink> link_;
};

}  // namespace

int RunClient(const ClientOptions& options) {
  signal(SIGPIPE, SIG_IGN);
  for (const std::string& warning : options.warnings) Warn(warning);
  auto mpiexec = OptionsOfMpiexec(options.mpiexec);
  if (!mpiexec.ok()) {
    Say(mpiexec.error());
    return kWrongCommandLine;
  }
  for (const std::string& note : mpiexec->notes) Say(note);
  const int ranks = CountOf(*mpiexec);
  if (ranks < 1 || ranks > kMostRanks) {
    Say(std::to_string(ranks) + " ranks: a client has 1 to " + std::to_string(kMostRanks));
    return kWrongCommandLine;
  }
  const pmi::Placement placement = pmi::Place(pmi::HostEntries(*mpiexec), ranks);
  const bool is_this_host = IsThisHost(*mpiexec, placement);
  const std::string problem = is_this_host ? CheckFiles(ranks, Job::kMostClients) : "";
  auto process = problem.empty() ? RanksProcess::Make(*mpiexec) : OrWhyNot<RanksProcess>(problem);
  if (!process.ok()) {
    Say(process.error());
    return 1;
  }
  const auto status = is_this_host ? Client(options, ranks, std::move(process).value()).Run(*mpiexec)
                                   : RunOnSeveralHosts(options, *mpiexec, placement, std::move(process).value());
  if (status.ok()) return *status;
  Say(status.error());
  return 1;
}

}  // namespace weft::impi
