#include "impi/run/host_agent.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "base/descriptor.h"
#include "base/file_limit.h"
#include "base/job_secret.h"
#include "base/result.h"
#include "impi/client/report.h"
#include "impi/entry/welcome.h"
#include "impi/run/agent_greeting.h"
#include "impi/run/authentication.h"
#include "impi/run/carry.h"
#include "impi/run/connect.h"
#include "impi/run/own_host.h"
#include "pmi/launch/greeting.h"
#include "pmi/launch/outbox.h"
#include "pmi/launch/sockets.h"

namespace weft::impi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;
template <typename T>
using OrWhyNot = Result<T, std::string>;

constexpr size_t kWords = 7;
constexpr char kNone[] = "-";
constexpr seconds kConnectPatience{60};  // while impirun is there and has no room
constexpr milliseconds kFirstRetry{100}, kLongestRetry{1000};

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text.empty() ? kNone : text;
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  if (text == kNone) return parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

// What mpiexec knows of this agent.
struct Identity {
  size_t number;  // of its host
  JobSecret secret;
};

// One request of PMI-1 (pmi/wire/). The value of `key` in the answer; nullopt: there is none.
std::optional<std::string> Ask(int fd, const std::string& request, const std::string& key) {
  if (!pmi::SendText(fd, "cmd=" + request + "\n")) return std::nullopt;
  const auto answer = pmi::ReadLine(fd, Clock::now() + kConnectPatience);
  std::istringstream words(answer.value_or(""));
  for (std::string word; words >> word;) {
    if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
  }
  return std::nullopt;
}

// The agent is a process of mpiexec's, which gives all of them the secret of their job.
OrWhyNot<Identity> AskMpiexec() {
  const char* const fd_text = getenv("PMI_FD");
  const char* const rank_text = getenv("PMI_RANK");
  const auto fd = NumberUpTo(fd_text == nullptr ? "" : fd_text, INT_MAX), rank = NumberUpTo(rank_text == nullptr ? "" : rank_text, INT_MAX);
  if (!fd || !rank) return std::string("--agent is for impirun's own use");
  const Descriptor mpiexec(static_cast<int>(*fd));
  Ask(mpiexec.get(), "init pmi_version=1 pmi_subversion=1", "rc");
  const auto space = Ask(mpiexec.get(), "get_my_kvsname", "kvsname");
  const auto digits = Ask(mpiexec.get(), "get kvsname=" + space.value_or("") + " key=weft_secret", "value");
  const auto secret = JobSecret::FromHex(digits.value_or(""));
  Ask(mpiexec.get(), "finalize", "rc");
  if (!secret) return std::string("mpiexec gave no secret; use one release of Weft on all hosts");
  return Identity{*rank, SecretOfAgents(*secret)};
}

OrWhyNot<Descriptor> ConnectToClient(const AgentWords& words, const Identity& identity) {
  const auto deadline = Clock::now() + kConnectPatience;
  milliseconds pause = kFirstRetry;
  for (bool again = true; again && Clock::now() < deadline; pause = std::min(pause * 2, kLongestRetry)) {
    again = false;
    for (const std::string& address : words.client_addresses) {
      Descriptor fd(pmi::Dial(address, std::to_string(words.port)));
      if (!fd) continue;
      bool closed = false;
      if (GreetClient(fd.get(), identity.secret, identity.number, &closed)) {
        pmi::ConfigureTcp(fd.get());
        return fd;
      }
      again |= closed;
    }
    if (again) poll(nullptr, 0, static_cast<int>(pause.count()));
  }
  return "cannot connect to impirun at port " + std::to_string(words.port) + " of " + Joined(words.client_addresses) +
         "; does a firewall block it, or is -iface needed?";
}

// The connection of an agent with its client.
class ClientLink {
 public:
  explicit ClientLink(Descriptor fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  // A few bytes. A warning that does not fit now is lost; if the client is gone, Read finds it out.
  void Say(const Command& command) {
    const Bytes bytes = command.Serialize();
    const int wait = command.code == kWarnCommand ? MSG_DONTWAIT : 0;
    (void)!send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | wait);
  }
  // A command that has come whole. After the last one, gone() may be true.
  std::optional<Command> Next() {
    auto command = reader_.NextCommand();
    gone_ = gone_ || reader_.refused_length();
    return command;
  }
  // What has come so far.
  void Read() {
    std::array<uint8_t, 65536> block;
    const ssize_t count = recv(fd_.get(), block.data(), block.size(), MSG_DONTWAIT);
    if (count > 0) reader_.Append({block.data(), static_cast<size_t>(count)});
    gone_ = gone_ || count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN);
  }
  // Waits for a command. nullopt: gone().
  std::optional<Command> Await() {
    for (;;) {
      if (auto command = Next()) return command;
      if (gone_) return std::nullopt;
      pollfd ready{fd_.get(), POLLIN, 0};
      poll(&ready, 1, -1);
      Read();
    }
  }
  bool gone() const { return gone_; }

 private:
  Descriptor fd_;
  CommandReader reader_{kLongestOrder};
  bool gone_ = false;
};

class HostAgent {
 public:
  HostAgent(Descriptor client, const Identity& identity, const AgentWords& words) : client_(std::move(client)), identity_(identity), words_(words) {}

  int Run() {
    if (const auto why = Serve()) client_.Say(FailReport{failed_here_, *why}.ToCommand());
    // Until the client says so, the other hosts keep their connections: they name the host that leaves first.
    while (!quits_) {
      const auto order = client_.Await();
      if (!order) break;
      Obey(*order);
    }
    return 0;
  }

 private:
  // Why the job has failed, or nothing.
  std::optional<std::string> Serve() {
    const std::string address = words_.addresses.empty() ? "" : words_.addresses[std::min(identity_.number, words_.addresses.size() - 1)];
    const auto host_id = OwnHostId(address, words_.interface, words_.server, pmi::OwnAddress(client_.fd()));
    if (!host_id.ok()) return host_id.error();
    int port = 0;
    Descriptor listener(pmi::Listen(&port, words_.ports));
    if (!listener) return "cannot listen for other clients: " + DescribeShortage(errno);
    auto processes = AgentListener::Open();
    if (!processes.ok()) return processes.error();
    client_.Say(HereReport{*host_id, static_cast<uint16_t>(port), processes->address}.ToCommand());
    const auto command = client_.Await();
    if (!command) return "impirun is gone";
    if (command->code == kQuitCommand || command->code == kShutCommand) {
      Obey(*command);
      return std::nullopt;
    }
    auto work = WorkOrder::From(*command);
    if (!work) return "impirun sent " + NameOf(command->code) + " and not WORK; use one release of Weft on all hosts";
    AnswerReader reader;
    for (ByteSpan rest = work->welcome; !rest.empty() && reader.Wants() != 0;) {
      const size_t count = std::min(rest.size(), reader.Wants());
      reader.Append(rest.first(count));
      rest = rest.subspan(count);
    }
    auto welcome = reader.Wants() == 0 ? reader.Take(0) : OrWhyNot<Welcome>("impirun sent a part of the job only");
    if (!welcome.ok()) return welcome.error();
    welcome_.emplace(std::move(welcome).value());
    return Carry(work->host, std::move(work->welcome), listener, std::move(*processes));
  }

  std::optional<std::string> Carry(HostRank host, Bytes welcome, Descriptor& listener, AgentListener processes) {
    const Job& job = welcome_->job;
    if (host.value < 0 || static_cast<size_t>(host.value) >= job.hosts().size() || job.host(host).client != job.self()) {
      return "impirun sent a job in which this is host " + std::to_string(host.value) + "; use one release of Weft on all hosts";
    }
    const Job::Host& own = job.host(host);
    if (std::string problem = CheckFiles(own.processes, static_cast<int>(job.hosts().size())); !problem.empty()) return problem;
    const auto warn = [this](const std::string& text) { client_.Say(CommandOfText(kWarnCommand, text)); };
    const auto stops = [this]() -> std::optional<std::string> {
      Hear();
      return ordered_ ? std::optional<std::string>("impirun ends the job") : std::nullopt;
    };
    auto hosts = ConnectHosts(job, {.host = host}, listener, warn, {client_.fd(), stops});
    if (ordered_) return std::nullopt;
    if (!hosts.ok()) return hosts.error();
    listener.Close();
    const auto first = welcome_->own.begin() + (own.first.value - job.ProcessesOf(job.self()).front().value);
    Carrier::Setup setup{.agent = AgentFor(job, host, welcome_->lam_clients), .ranks = {first, first + own.processes}, .welcome = std::move(welcome), .warn = warn};
    carrier_.emplace(job, std::move(setup), std::move(*hosts), std::move(processes));
    client_.Say({kConnectedCommand, {}});
    carrier_->Watch(client_.fd(), [this] { Hear(); });
    runs_ = true;
    auto why = carrier_->Run();
    runs_ = false;
    failed_here_ = carrier_->FailedByProcess();
    if (ordered_) {
      carrier_->CloseProcesses();
      return std::nullopt;
    }
    if (!why) client_.Say({kOverCommand, {}});
    return why;
  }

  // What the client says while this agent waits for others, too.
  void Hear() {
    client_.Read();
    while (const auto order = client_.Next()) Obey(*order);
    if (!client_.gone()) return;
    Obey({kQuitCommand, {}});
  }

  void Obey(const Command& order) {
    if (order.code == kGoneCommand && runs_) carrier_->NoMoreProcesses(TextOf(order));
    if (order.code != kShutCommand && order.code != kQuitCommand) return;
    ordered_ = true;
    quits_ = quits_ || order.code == kQuitCommand;
    if (!carrier_) return;
    if (runs_) {
      carrier_->Fail("impirun ends the job");  // nobody reads this
    } else {
      carrier_->CloseProcesses();
    }
  }

  ClientLink client_;
  const Identity identity_;
  const AgentWords& words_;
  std::optional<Welcome> welcome_;
  std::optional<Carrier> carrier_;
  bool runs_ = false;          // the carrier
  bool failed_here_ = true;    // what fails before the job runs is of this host
  bool ordered_ = false;       // the client ends the job
  bool quits_ = false;
};

}  // namespace

std::vector<std::string> AgentWords::ToCommandLine(const std::string& impirun) const {
  return {impirun,
          "--agent",
          std::to_string(port),
          Joined(client_addresses),
          server.host(),
          std::to_string(server.port()),
          std::to_string(ports.first) + ":" + std::to_string(ports.last),
          interface.empty() ? kNone : interface,
          Joined(addresses)};
}

std::optional<AgentWords> AgentWords::Parse(const std::vector<std::string>& words) {
  if (words.size() != kWords) return std::nullopt;
  const size_t colon = words[4].find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto port = NumberUpTo(words[0], UINT16_MAX), server_port = NumberUpTo(words[3], UINT16_MAX);
  const auto first = NumberUpTo(words[4].substr(0, colon), UINT16_MAX), last = NumberUpTo(words[4].substr(colon + 1), UINT16_MAX);
  if (!port || !server_port || !first || !last) return std::nullopt;
  const auto server = transport::SocketAddress::Parse(words[2], static_cast<uint16_t>(*server_port));
  if (!server) return std::nullopt;
  return AgentWords{.port = static_cast<int>(*port),
                    .client_addresses = Split(words[1]),
                    .server = *server,
                    .ports = {static_cast<int>(*first), static_cast<int>(*last)},
                    .interface = words[5] == kNone ? "" : words[5],
                    .addresses = Split(words[6])};
}

int RunHostAgent(const std::vector<std::string>& all) {
  signal(SIGPIPE, SIG_IGN);
  const auto words = AgentWords::Parse(all);
  const auto identity = words ? AskMpiexec() : OrWhyNot<Identity>("--agent is for impirun's own use");
  if (!identity.ok()) {
    std::fprintf(stderr, "impirun: %s\n", identity.error().c_str());
    return 2;
  }
  RaiseFileLimit();
  auto client = ConnectToClient(*words, *identity);
  if (!client.ok()) {
    std::fprintf(stderr, "impirun: %s\n", client.error().c_str());
    return 1;
  }
  return HostAgent(std::move(client).value(), *identity, *words).Run();
}

}  // namespace weft::impi
