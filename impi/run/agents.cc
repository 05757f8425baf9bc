#include "impi/run/agents.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file_limit.h"
#include "base/high_descriptor.h"
#include "impi/run/host_agent.h"
#include "impi/run/membership.h"
#include "pmi/launch/greeting.h"
#include "pmi/launch/sockets.h"

namespace weft::impi {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kStartPatience{pmi::kStartLimit + seconds(60)};  // for mpiexec's proxies, then for the agents
constexpr size_t kMostStrangers = 64;                               // above the number of agents
constexpr milliseconds kPause{100};                                 // until the listener is looked at again when there was no room
constexpr int kProbes = 3;  // one less than ConfigureTcp's: the loss of a host is known before mpiexec ends its ranks for it
constexpr seconds kFlushLimit{5};
constexpr milliseconds kEndTime{5000};                              // for the agents and mpiexec to end by themselves

// mpiexec's job of the agents. Where it starts them, and how, is as for the ranks; all else is not for them.
pmi::Options OptionsOfAgents(const pmi::Options& ranks, const std::vector<std::string>& hosts, const JobSecret& secret, const AgentWords& words) {
  pmi::Options options;
  for (const std::string& host : hosts) options.hosts.push_back({host, 1});
  std::error_code error;
  pmi::ProgramOptions agent;
  agent.ranks = static_cast<int>(hosts.size());
  agent.arguments = words.ToCommandLine(std::filesystem::read_symlink("/proc/self/exe", error));
  options.programs.push_back(std::move(agent));
  options.launcher = ranks.launcher;
  options.launcher_arguments = ranks.launcher_arguments;
  options.takes_allocation = false;
  options.most_branches = ranks.most_branches;
  options.ports = ranks.ports;
  options.interface = ranks.interface;
  // If one dies, it is this client that ends the others: then it knows which one was the first.
  options.goes_on = true;
  options.ignores_terminal = true;
  options.secret = secret;
  return options;
}

}  // namespace

Result<std::unique_ptr<Agents>, std::string> Agents::Start(const ClientOptions& options, const pmi::Options& mpiexec, const std::vector<std::string>& hosts,
                                                           const std::vector<std::string>& addresses, const transport::SocketAddress& server) {
  RaiseFileLimit();
  AgentWords words{.server = server, .ports = mpiexec.ports, .interface = mpiexec.interface, .addresses = addresses};
  Descriptor listener(pmi::Listen(&words.port, mpiexec.ports));
  if (!listener) return "cannot listen for the agents of this client: " + DescribeShortage(errno);
  words.client_addresses = pmi::AddressesFor({}, mpiexec.interface);
  if (words.client_addresses.empty()) return "-iface " + mpiexec.interface + ": no such interface, or it has no address";
  const JobSecret secret = JobSecret::Random();
  std::unique_ptr<Agents> agents(new Agents(ClientRank(options.client), hosts, SecretOfAgents(secret), std::move(listener)));
  auto process = AgentsProcess::Start(OptionsOfAgents(mpiexec, hosts, secret, words));
  if (!process.ok()) return process.error();
  agents->process_.emplace(std::move(process).value());
  return agents;
}

Agents::Agents(ClientRank client, const std::vector<std::string>& hosts, const JobSecret& secret, Descriptor listener)
    : secret_(secret), group_(client, hosts), listener_(std::move(listener)), comes_by_(Clock::now() + kStartPatience), links_(hosts.size()) {}

bool Agents::all_are_here() const { return group_.stage() != AgentGroup::Stage::kStarting; }

int Agents::Patience(int most) const {
  if (all_are_here()) return most;
  auto when = comes_by_;
  if (Clock::now() < listen_again_) when = std::min(when, listen_again_);
  for (const Stranger& stranger : strangers_) when = std::min(when, stranger.since + pmi::kGreetingLimit);
  return static_cast<int>(std::max(milliseconds(0), std::chrono::ceil<milliseconds>(when - Clock::now())).count());
}

void Agents::Wait(pmi::Poller& poller, int most) {
  TakeOutput();
  if (Clock::now() >= listen_again_) poller.Watch(listener_.get(), POLLIN, [this](short) { Accept(); });
  for (Stranger& stranger : strangers_) poller.Watch(stranger.fd.get(), POLLIN, [this, &stranger](short) { ReadGreeting(stranger); });
  for (size_t agent = 0; agent < links_.size(); ++agent) {
    const short events = static_cast<short>(POLLIN | (links_[agent].out.empty() ? 0 : POLLOUT));
    poller.Watch(links_[agent].fd.get(), events, [this, agent](short came) {
      if ((came & POLLOUT) != 0) Write(agent);
      if ((came & ~POLLOUT) != 0) Read(agent);
    });
  }
  if (!process_->exit_status()) poller.Watch(process_->fd(), POLLIN, [this](short) { process_->Look(); });
  poller.Wait(Patience(most));
  strangers_.remove_if([](const Stranger& stranger) { return stranger.over; });
  OnTime();
  for (const std::string& warning : group_.TakeWarnings()) Warn(warning);
}

// Agents that have come tell of their own ends; those that have not would be waited for in vain.
void Agents::OnTime() {
  const auto now = Clock::now();
  strangers_.remove_if([&](const Stranger& stranger) { return now - stranger.since >= pmi::kGreetingLimit; });
  if (all_are_here()) {
    strangers_.clear();
    listener_.Close();
    return;
  }
  if (problem_) return;
  const auto& gone = process_->gone();
  const auto lost = std::find_if(gone.begin(), gone.end(), [this](int agent) { return !links_[static_cast<size_t>(agent)].fd; });
  if (lost != gone.end()) {
    problem_ = "the agent of " + group_.NameOf(static_cast<size_t>(*lost)) + " ended before it connected to impirun";
  } else if (const auto status = process_->exit_status()) {
    problem_ = "mpiexec has not started the agents of all hosts of client " + std::to_string(group_.client().value) + " (its exit status is " +
               std::to_string(*status) + ")";
  } else if (now >= comes_by_) {
    problem_ = "the agent of " + group_.MissingHost() + " has not connected to impirun within " + std::to_string(kStartPatience.count()) +
               " seconds; does a firewall block it, or is -iface needed?";
  }
}

void Agents::Accept() {
  Descriptor fd(AcceptOnListener(listener_.get()));
  if (!fd) {
    if (IsShortage(errno)) listen_again_ = Clock::now() + kPause;
    return;
  }
  if (strangers_.size() >= kMostStrangers + links_.size()) return;  // an agent tries again
  pmi::SetNonBlocking(fd.get());
  strangers_.emplace_back(std::move(fd), secret_, links_.size());
}

void Agents::ReadGreeting(Stranger& stranger) {
  const AgentGreeting::State state = stranger.greeting.Read();
  stranger.over = state != AgentGreeting::State::kWaits;
  if (state != AgentGreeting::State::kIsAgent || links_[stranger.greeting.number()].fd) return;
  pmi::ConfigureTcp(stranger.fd.get());
  setsockopt(stranger.fd.get(), IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
  links_[stranger.greeting.number()].fd = std::move(stranger.fd);
}

void Agents::Read(size_t agent) {
  std::array<char, 65536> block;
  const long count = pmi::ReadSome(links_[agent].fd.get(), block.data(), block.size());
  if (count == -EAGAIN) return;
  if (count > 0) return group_.OnBytes(agent, {reinterpret_cast<const uint8_t*>(block.data()), static_cast<size_t>(count)});
  links_[agent].fd.Close();
  group_.OnClosed(agent);
}

// If the agent is gone, Read finds it out.
void Agents::Write(size_t agent) {
  if (links_[agent].out.WriteTo(links_[agent].fd.get()) != 0) links_[agent].out.Clear();
}

void Agents::TakeOutput() {
  for (size_t agent = 0; agent < links_.size(); ++agent) {
    const Bytes output = group_.TakeOutput(agent);
    if (!links_[agent].fd) continue;
    links_[agent].out.Add({reinterpret_cast<const char*>(output.data()), output.size()});
    if (!output.empty()) Write(agent);
  }
}

void Agents::Flush() {
  TakeOutput();
  for (const auto end = Clock::now() + kFlushLimit; Clock::now() < end;) {
    pmi::Poller poller;
    bool waits = false;
    for (size_t agent = 0; agent < links_.size(); ++agent) {
      if (!links_[agent].fd || links_[agent].out.empty()) continue;
      waits = true;
      poller.Watch(links_[agent].fd.get(), POLLOUT, [this, agent](short) { Write(agent); });
    }
    if (!waits) return;
    poller.Wait(static_cast<int>(kPause.count()));
  }
}

void Agents::End() {
  group_.Quit();
  Flush();
  process_->End(kEndTime);
}

}  // namespace weft::impi
