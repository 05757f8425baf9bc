#include "pmi/launch/proxy_tree.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <utility>

#include "base/deadline.h"
#include "pmi/launch/placement.h"
#include "pmi/launch/poller.h"

namespace weft::pmi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGrowLimit{300};  // for those below the proxies, who wait 120 s for each level

using Branches = std::vector<std::unique_ptr<ProxyTree::Branch>>;
using Hosts = std::vector<GrowOrder::Host>;

// Those of a branch, of which the first is connected with this process.
struct Part {
  Hosts hosts;
  bool is_local = false;
};

std::vector<Part> Partition(const Hosts& hosts) {
  std::vector<Part> parts;
  Hosts elsewhere;
  for (const GrowOrder::Host& host : hosts) {
    if (IsThisHost(host.name)) {
      parts.push_back({{host}, true});
    } else {
      elsewhere.push_back(host);
    }
  }
  for (Hosts& share : Shares(elsewhere, ProxyTree::kMostBranches)) parts.push_back({std::move(share), false});
  return parts;
}

// The answers of proxies that were told to grow.
class Growth {
 public:
  Growth(const Branches& branches, const ProxyTree::Means& means) : means_(means) {
    for (const auto& branch : branches) {
      if (branch->hosts.size() > 1) waiting_.insert(branch.get());
    }
  }

  std::optional<LaunchError> Wait() {
    const auto deadline = Clock::now() + kGrowLimit;
    Poller poller;
    while (!waiting_.empty() && !error_) {
      poller.Watch(means_.signals, POLLIN, [&](short) { error_ = TakeSignals(means_.signals, [] {}, "all proxies were there"); });
      poller.Watch(means_.lifeline, POLLRDHUP, [&](short) { error_ = LaunchError{1, "mpiexec is gone"}; });
      for (ProxyTree::Branch* branch : waiting_) {
        const short out = branch->link.connection->wants_to_write() ? POLLOUT : 0;
        poller.Watch(branch->link.connection->fd(), static_cast<short>(POLLIN | out), [this, branch](short events) { OnBranch(*branch, events); });
      }
      poller.Wait(MillisecondsUntil(deadline));
      for (ProxyTree::Branch* branch : there_) waiting_.erase(branch);
      if (!error_ && !waiting_.empty() && Clock::now() >= deadline) {
        error_ = LaunchError{1, "the hosts below " + (*waiting_.begin())->link.host + " have not been started within " + std::to_string(kGrowLimit.count()) + " s"};
      }
    }
    return error_;
  }

 private:
  void OnBranch(ProxyTree::Branch& branch, short events) {
    Connection& connection = *branch.link.connection;
    bool alive = true;
    if (events & POLLOUT) alive = connection.Write();
    if (events & ~POLLOUT) alive = connection.Read() && alive;
    if (const auto frame = connection.Next()) {
      const auto [code, why] = ParseNumberAndText(frame->payload);
      if (frame->type == FrameType::kGrown && code == 0) {
        there_.push_back(&branch);
      } else {
        error_ = LaunchError{code, why};
      }
    } else if (!alive || connection.broken()) {
      error_ = LaunchError{1, "the connection to " + branch.link.host + " ended while it started proxies on other hosts"};
    }
  }

  const ProxyTree::Means& means_;
  std::set<ProxyTree::Branch*> waiting_;
  std::vector<ProxyTree::Branch*> there_;
  std::optional<LaunchError> error_;
};

}  // namespace

std::vector<std::vector<GrowOrder::Host>> Shares(const std::vector<GrowOrder::Host>& hosts, size_t parts) {
  std::vector<std::vector<GrowOrder::Host>> shares(std::min(parts, hosts.size()));
  auto next = hosts.begin();
  for (size_t i = 0; i < shares.size(); ++i) {
    const auto length = static_cast<std::ptrdiff_t>(hosts.size() / shares.size() + (i < hosts.size() % shares.size() ? 1 : 0));
    shares[i].assign(next, next + length);
    next += length;
  }
  return shares;
}

bool ProxyTree::Branch::leads_to(int32_t host) const { return std::find(hosts.begin(), hosts.end(), host) != hosts.end(); }

void ProxyTree::Branch::Send(Frame frame, int32_t host) {
  if (!open) return;
  const bool for_the_first = host == own_host() || (host == Frame::kEverywhere && hosts.size() == 1);
  frame.host = for_the_first ? Frame::kHere : host;
  link.connection->Send(frame);
}

ProxyTree::Branch* ProxyTree::To(int32_t host) const {
  const auto found = std::find_if(branches_.begin(), branches_.end(), [&](const auto& branch) { return branch->leads_to(host); });
  return found == branches_.end() ? nullptr : found->get();
}

std::optional<LaunchError> ProxyTree::Grow(const GrowOrder& order, const Means& means) {
  const std::vector<Part> parts = Partition(order.hosts);
  RemoteStart start{{}, means.remote_shell, means.interface, means.signals, means.lifeline, means.secret};
  for (const Part& part : parts) start.hosts.push_back({part.hosts.front().name, part.is_local});
  auto links = StartProxies(start);
  if (!links) return links.error();
  Branches grown;
  for (size_t i = 0; i < parts.size(); ++i) {
    auto branch = std::make_unique<Branch>();
    branch->link = std::move(links.value()[i]);
    const Hosts& hosts = parts[i].hosts;
    for (const GrowOrder::Host& host : hosts) branch->hosts.push_back(host.number);
    if (hosts.size() > 1) {
      const GrowOrder rest{{hosts.begin() + 1, hosts.end()}, means.remote_shell, means.interface};
      branch->Send({FrameType::kGrow, 0, rest.Serialize()}, branch->own_host());
    }
    grown.push_back(std::move(branch));
  }
  if (auto error = Growth(grown, means).Wait()) return error;
  std::move(grown.begin(), grown.end(), std::back_inserter(branches_));
  return std::nullopt;
}

}  // namespace weft::pmi
