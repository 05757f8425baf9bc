#include "impi/run/several_hosts.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "impi/client/agent_group.h"
#include "impi/entry/welcome.h"
#include "impi/run/agents.h"
#include "impi/run/membership.h"
#include "impi/run/own_host.h"
#include "pmi/launch/poller.h"

namespace weft::impi {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Stage = AgentGroup::Stage;
template <typename T>
using OrWhyNot = Result<T, std::string>;

constexpr milliseconds kSettles{200};  // for the news of the cause, if what followed from it is known already

// The ranks of each host, ascending: the order of the processes in the job.
std::vector<std::vector<int32_t>> RanksByHost(const pmi::Placement& placement) {
  std::vector<std::vector<int32_t>> ranks(placement.hosts.size());
  for (size_t rank = 0; rank < placement.host_of_rank.size(); ++rank) {
    ranks[static_cast<size_t>(placement.host_of_rank[rank])].push_back(static_cast<int32_t>(rank));
  }
  return ranks;
}

class SeveralHosts {
 public:
  SeveralHosts(const ClientOptions& options, const pmi::Placement& placement, RanksProcess process)
      : options_(options), placement_(placement), ranks_(RanksByHost(placement)), process_(std::move(process)) {}

  OrWhyNot<int> Run(const pmi::Options& mpiexec, const std::vector<std::string>& hosts) {
    if (options_.addresses.size() > 1 && options_.addresses.size() != hosts.size()) {
      return "-address names " + std::to_string(options_.addresses.size()) + " addresses, and the ranks run on " + std::to_string(hosts.size()) + " hosts";
    }
    const auto server = ServerAddress(options_);
    if (!server.ok()) return server.error();
    auto agents = Agents::Start(options_, mpiexec, hosts, options_.addresses, *server);
    if (!agents.ok()) return agents.error();
    agents_ = std::move(agents).value();
    const auto why = Start(*server);
    if (!why) return RunJob();
    member_.reset();  // the server names the client that leaves first
    agents_->End();
    return *why;
  }

 private:
  AgentGroup& group() { return agents_->group(); }

  // Until the ranks run. Why not: a sentence.
  std::optional<std::string> Start(const transport::SocketAddress& server) {
    if (auto why = AwaitStage(Stage::kStarting)) return why;
    const auto wait = [this](pmi::Poller& poller, int milliseconds) {
      agents_->Wait(poller, milliseconds);
      return WhyFailed();
    };
    auto member = BecomeMember(options_, server, Announcements(), wait);
    if (!member.ok()) return member.error();
    member_.emplace(std::move(member).value());
    const HostRank first = FirstHost(member_->job);
    std::vector<int32_t> own;
    for (const auto& ranks : ranks_) own.insert(own.end(), ranks.begin(), ranks.end());
    const Job& job = member_->job;
    const Bytes welcome = Welcome::Serialize(job.self(), job.clients(), member_->link->dialogue().told(), own, member_->lam_clients);
    group().Begin(first, welcome);
    if (auto why = AwaitStage(Stage::kConnecting)) return why;
    std::vector<std::string> addresses;
    for (const HereReport& place : group().places()) addresses.push_back(place.processes_at);
    return process_.Start(addresses);
  }

  std::vector<HostAnnouncement> Announcements() {
    std::vector<HostAnnouncement> hosts;
    for (size_t host = 0; host < ranks_.size(); ++host) {
      const HereReport& place = group().places()[host];
      hosts.push_back({place.address, place.port, options_.ack_mark, options_.high_water, NamesOf(place.address, place.port, static_cast<int>(ranks_[host].size()))});
    }
    return hosts;
  }

  // Waits while all agents or some of them are at this stage.
  std::optional<std::string> AwaitStage(Stage stage) {
    while (group().stage() == stage && !lost_server_ && !agents_->problem()) WaitForOne();
    return WhyFailed();
  }

  std::optional<std::string> WhyFailed() {
    if (group().stage() == Stage::kFailed) return group().reason();
    return lost_server_ ? lost_server_ : agents_->problem();
  }

  void WaitForOne() {
    pmi::Poller poller;
    if (member_ && !lost_server_) {
      poller.Watch(member_->link->fd(), POLLIN, [this](short) { lost_server_ = member_->link->LookAtServer(); });
    }
    if (runs_) poller.Watch(process_.fd(), POLLIN, [this](short) { LookAtRanks(); });
    agents_->Wait(poller);
  }

  void LookAtRanks() {
    process_.Look();
    const auto status = process_.exit_status();
    if (!status || std::exchange(ranks_ended_, true)) return;
    group().OnRanksEnded(" ended without MPI_Init (mpiexec's exit status is " + std::to_string(*status) + "); all ranks of a client have to call it");
  }

  int RunJob() {
    runs_ = true;
    LookAtRanks();
    if (AwaitStage(Stage::kRunning)) {
      const bool here = WasHere();
      Say(*WhyFailed());
      return here ? FailAtOnce() : FailLater();
    }
    const int status = process_.Wait();
    member_->link->Leave();
    agents_->End();
    return status;
  }

  // Whether this client is at fault. An agent that died may be what the other clients heard of first; and a rank that died, what mpiexec ended others for.
  bool WasHere() {
    const auto here = [this] { return group().stage() == Stage::kFailed && group().failed_here(); };
    for (const auto end = Clock::now() + kSettles;;) {
      process_.Look();
      if (const auto rank = process_.last_gone()) group().OnFirstDeath(static_cast<size_t>(placement_.host_of_rank[static_cast<size_t>(*rank)]));
      if (here()) member_.reset();  // before the others may leave
      const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
      if (left.count() <= 0 || (here() && !group().AwaitsFirstDeath())) return here();
      pmi::Poller poller;
      agents_->Wait(poller, static_cast<int>(left.count()));
    }
  }

  // As with one host (client.cc): a client that is at fault leaves at once, the server first. One that has heard of a failure elsewhere stays until its ranks
  // have ended.
  int FailAtOnce() {
    group().Quit();
    agents_->Flush();
    const int status = process_.End(kOwnDeath);
    agents_->End();
    return status != 0 ? status : 1;
  }
  int FailLater() {
    group().CloseProcesses();
    agents_->Flush();
    process_.End(milliseconds(0));
    agents_->End();
    return 1;
  }

  const ClientOptions& options_;
  const pmi::Placement& placement_;
  const std::vector<std::vector<int32_t>> ranks_;  // by host
  RanksProcess process_;
  std::unique_ptr<Agents> agents_;
  std::optional<Membership> member_;
  std::optional<std::string> lost_server_;  // why
  bool runs_ = false;                       // the ranks
  bool ranks_ended_ = false;
};

}  // namespace

OrWhyNot<int> RunOnSeveralHosts(const ClientOptions& options, const pmi::Options& mpiexec, const pmi::Placement& placement, RanksProcess process) {
  return SeveralHosts(options, placement, std::move(process)).Run(mpiexec, placement.hosts);
}

}  // namespace weft::impi
