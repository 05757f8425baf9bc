#include "impi/run/client.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/file_limit.h"
#include "impi/entry/welcome.h"
#include "impi/job/announcement.h"
#include "impi/job/job.h"
#include "impi/run/carry.h"
#include "impi/run/connect.h"
#include "impi/run/join.h"
#include "impi/run/ranks_process.h"
#include "pmi/launch/sockets.h"
#include "transport/socket_address.h"

namespace weft::impi {
namespace {

using std::chrono::milliseconds;
using transport::SocketAddress;
template <typename T>
using OrWhyNot = Result<T, std::string>;

constexpr int kWrongCommandLine = 2;
constexpr int32_t kTagUpperBound = 0x3fffffff;      // of Weft's MPI library
constexpr milliseconds kOwnDeath{5000};             // for mpiexec to end the job itself when one of its ranks has died
constexpr int kMostRanks = 1 << 15;                 // of a client: see NamesOf
constexpr size_t kAllProcesses = 256 << 20;         // bytes of packets in the agent that came from processes
constexpr size_t kAllHosts = 512 << 20;             // bytes of packets in the agent that came from hosts
constexpr rlim_t kOtherFiles = 32;                  // descriptors beside the connections

void Say(const std::string& text) { std::fprintf(stderr, "impirun: %s\n", text.c_str()); }
void Warn(const std::string& text) { Say("warning: " + text); }

// The ranks that mpiexec starts. Why not: what is wrong with its command line.
OrWhyNot<pmi::Options> OptionsOfMpiexec(const std::vector<std::string>& words) {
  auto parsed = pmi::ParseOptions(words, secure_getenv);
  if (!parsed) return parsed.error().message;
  pmi::Options options = std::move(parsed).value();
  if (options.action != pmi::Options::Action::kRun) return "'" + words[0] + "' starts no ranks; give it to mpiexec";
  if (!options.hosts.empty() || options.skips_this_host) {
    return std::string("the ranks of a client run on this host: leave out -hosts, -f and -skip-launch-node, and unset HYDRA_HOST_FILE");
  }
  options.takes_allocation = false;
  return options;
}

int CountOf(const pmi::Options& options) {
  const std::vector<int> ranks = RanksOfPrograms(options);
  return std::accumulate(ranks.begin(), ranks.end(), 0);
}

// The numeric address of the server. The specification has IPv4 addresses, so these come first.
OrWhyNot<SocketAddress> Resolve(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  for (const int family : {AF_INET, AF_UNSPEC}) {
    hints.ai_family = family;
    addrinfo* found = nullptr;
    const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
    if (error != 0 && family == AF_INET) continue;
    if (error != 0) return "the server's host '" + host + "' is not known: " + gai_strerror(error);
    char text[NI_MAXHOST] = "";
    getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    freeaddrinfo(found);
    if (const auto address = SocketAddress::Parse(text, port)) return *address;
  }
  return "the server's host '" + host + "' has no address that can be used";
}

// What this host announces: the address that the user named, that of -iface, or the one from which it reaches the server.
OrWhyNot<HostId> OwnAddress(const ClientOptions& options, const pmi::Options& mpiexec, const SocketAddress& server) {
  std::string text = options.address;
  if (text.empty() && !mpiexec.interface.empty()) {
    const auto addresses = pmi::AddressesFor({}, mpiexec.interface);
    if (addresses.empty()) return "-iface " + mpiexec.interface + ": no such interface, or it has no address";
    text = addresses.front();
  }
  if (text.empty()) {
    // Connecting a datagram socket sends nothing, and chooses the address.
    const Descriptor fd(socket(server.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd || connect(fd.get(), server.get(), server.length()) != 0) return "there is no way to the server at " + server.host() + ": " + std::strerror(errno);
    text = pmi::OwnAddress(fd.get());
  }
  HostId host{};
  in_addr ipv4;
  if (inet_pton(AF_INET, text.c_str(), &ipv4) == 1) return HostIdOfIpv4(ipv4.s_addr);
  if (inet_pton(AF_INET6, text.c_str(), host.data()) == 1) return host;
  return "'" + text + "' is not an address of IPv4 or IPv6; -address names one";
}

// IMPI_P_PID has to differ among all processes that announce this address, also of other clients on this host. Ports do. The number fits into 31 bits, and
// is above those that Linux gives to processes, which LAM announces.
std::vector<ProcessName> NamesOf(const HostId& host, int port, int count) {
  std::vector<ProcessName> names;
  for (int i = 0; i < count; ++i) names.push_back({host, int64_t{port} * kMostRanks + i});
  return names;
}

Agent::Setup AgentFor(const Job& job, HostRank host, uint32_t lam_clients) {
  const auto share = [](size_t all, size_t among, size_t least, size_t most) { return std::clamp(all / std::max<size_t>(among, 1), least, most); };
  Agent::Setup setup{.host = host, .lam_clients = lam_clients};
  setup.process_budget = share(kAllProcesses, static_cast<size_t>(job.host(host).processes), 256 << 10, 4 << 20);
  setup.host_budget = share(kAllHosts, job.hosts().size(), 4 << 20, 64 << 20);
  return setup;
}

// Whether this process may have a descriptor for each of its connections. Why not, or "".
std::string CheckFiles(int ranks) {
  RaiseFileLimit();
  rlimit limit{};
  const rlim_t needed = static_cast<rlim_t>(ranks) + Job::kMostClients + kOtherFiles;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return {};
  return std::to_string(ranks) + " ranks need " + std::to_string(needed) + " open files in their agent, and the limit is " + std::to_string(limit.rlim_cur) +
         "; raise it (ulimit -n), or start fewer ranks";
}

class Client {
 public:
  Client(const ClientOptions& options, int ranks, RanksProcess process) : options_(options), ranks_(ranks), process_(std::move(process)) {}

  OrWhyNot<int> Run(const pmi::Options& mpiexec) {
    const auto server = Resolve(options_.host, options_.port);
    if (!server.ok()) return server.error();
    const auto address = OwnAddress(options_, mpiexec, *server);
    if (!address.ok()) return address.error();
    int port = 0;
    Descriptor listener(pmi::Listen(&port, mpiexec.ports));
    if (!listener) return "cannot listen for other clients: " + DescribeShortage(errno);
    const Announcement mine = Announce(*address, port);
    if (auto why = Join(*server, mine)) return *why;
    const auto job = Job::Of(link_->dialogue().clients(), link_->dialogue().told(), ClientRank(options_.client), mine);
    if (!job.ok()) return job.error();
    return RunJob(*job, listener);
  }

 private:
  Announcement Announce(const HostId& address, int port) const {
    Announcement mine{.data_length = options_.data_length,
                      .tag_upper_bound = kTagUpperBound,
                      .crossover_size = options_.crossover_size,
                      .max_linear = options_.max_linear,
                      .hosts = {{address, static_cast<uint32_t>(port), options_.ack_mark, options_.high_water, NamesOf(address, port, ranks_)}}};
    return mine;
  }

  std::optional<std::string> Join(const SocketAddress& server, const Announcement& mine) {
    Dialogue::Setup setup;
    setup.rank = options_.client;
    setup.none = options_.authentication.Has(AuthMethod::kNone);
    if (options_.authentication.Has(AuthMethod::kKey)) setup.key = options_.authentication.key;
    setup.says = mine.ToLabels();
    auto link = ServerLink::Join(server.host(), options_.port, std::move(setup));
    if (!link.ok()) return link.error();
    link_ = std::move(link).value();
    return std::nullopt;
  }

  // This client has one host.
  static HostRank HostOf(const Job& job) {
    const auto own = std::find_if(job.hosts().begin(), job.hosts().end(), [&](const Job::Host& host) { return host.client == job.self(); });
    return HostRank(static_cast<int32_t>(own - job.hosts().begin()));
  }

  OrWhyNot<int> RunJob(const Job& job, Descriptor& listener) {
    if (job.high_water() < 2 * job.ack_mark()) {
      Warn("the hosts agreed on a hiwater of " + std::to_string(job.high_water()) + " and an ackmark of " + std::to_string(job.ack_mark()) +
           "; with less than twice the ackmark, processes can wait for each other for ever");
    }
    const HostRank host = HostOf(job);
    auto hosts = ConnectHosts(job, {.host = host}, listener, Warn);
    if (!hosts.ok()) return hosts.error();
    listener.Close();
    auto agent = AgentListener::Open();
    if (!agent.ok()) return agent.error();
    const uint32_t others = ~(uint32_t{1} << options_.client) & static_cast<uint32_t>((uint64_t{1} << job.clients()) - 1);
    const uint32_t lam_clients = options_.lam_peers ? others : 0;
    Carrier::Setup setup{.agent = AgentFor(job, host, lam_clients), .ranks = std::vector<int32_t>(static_cast<size_t>(ranks_)), .welcome = {}, .warn = Warn};
    std::iota(setup.ranks.begin(), setup.ranks.end(), 0);
    setup.welcome = Welcome::Serialize(job.self(), job.clients(), link_->dialogue().told(), setup.ranks, lam_clients);
    const std::string agents_address = agent->address;
    Carrier carrier(job, std::move(setup), std::move(*hosts), std::move(*agent));
    if (auto why = process_.Start(agents_address)) return *why;
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
  std::string problem = CheckFiles(ranks);
  auto process = problem.empty() ? RanksProcess::Make(*mpiexec) : OrWhyNot<RanksProcess>(problem);
  if (!process.ok()) {
    Say(process.error());
    return 1;
  }
  const auto status = Client(options, ranks, std::move(process).value()).Run(*mpiexec);
  if (status.ok()) return *status;
  Say(status.error());
  return 1;
}

}  // namespace weft::impi
