#include "pmi/launch/tree_growth.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "pmi/launch/frame.h"

namespace weft::pmi {
namespace {

constexpr char kNoRoom[] = "cannot watch the start of proxies: no descriptor is left";
constexpr std::chrono::seconds kGrowLimit{300};  // for those below the proxies, who wait 120 s for each level

}  // namespace

TreeGrowth::TreeGrowth(GrowOrder order, const JobSecret& secret) : order_(std::move(order)), secret_(secret) {
  std::vector<std::string> names;
  for (const GrowOrder::Host& host : order_.hosts) names.push_back(host.name);
  lookup_ = std::make_unique<HostLookup>(names);
  if (lookup_->done()) {
    StartParts();
  } else if (!poller_.Watch(lookup_->fd(), EPOLLIN, [](uint32_t) {})) {
    Fail({1, kNoRoom});
  }
}

TreeGrowth::Clock::time_point TreeGrowth::wake_at() const {
  switch (stage_) {
    case Stage::kLookUp:
      return lookup_->deadline();
    case Stage::kStart:
      return starter_->wake_at();
    case Stage::kBelow:
      return below_limit_;
    case Stage::kDone:
      break;
  }
  return Clock::now();
}

std::string TreeGrowth::MissingHosts() const {
  if (stage_ == Stage::kStart) return starter_->MissingHosts();
  std::string names;
  for (const Branch* branch : waiting_) names += (names.empty() ? "" : ", ") + ("those below " + branch->link.host);
  return !names.empty() || order_.hosts.empty() ? names : order_.hosts.front().name;
}

void TreeGrowth::Step() {
  if (stage_ == Stage::kLookUp) {
    const int fd = lookup_->fd();
    lookup_->Step();
    if (!lookup_->done()) return;
    poller_.Forget(fd);
    StartParts();
  } else if (stage_ == Stage::kStart) {
    starter_->Step();
    OrderThoseBelow();
  } else if (stage_ == Stage::kBelow) {
    poller_.Wait(0);
    if (stage_ == Stage::kBelow && Clock::now() >= below_limit_) {
      Fail({1, "the hosts below " + (*waiting_.begin())->link.host + " have not been started within " + std::to_string(kGrowLimit.count()) + " s"});
    }
  }
}

void TreeGrowth::StartParts() {
  stage_ = Stage::kStart;
  Hosts elsewhere;
  std::vector<ProxyStarter::Host> starts;
  const std::vector<HostFacts>& facts = lookup_->facts();
  const auto facts_of = [&](const GrowOrder::Host& host) {
    const auto at = std::find(order_.hosts.begin(), order_.hosts.end(), host) - order_.hosts.begin();
    return facts[static_cast<size_t>(at)];
  };
  for (const GrowOrder::Host& host : order_.hosts) {
    if (facts_of(host).is_this) {
      parts_.push_back({{host}, true});
    } else {
      elsewhere.push_back(host);
    }
  }
  for (Hosts& share : Shares(elsewhere, order_.means.most_branches)) parts_.push_back({std::move(share), false});
  for (const Part& part : parts_) starts.push_back({part.hosts.front().name, part.is_local, facts_of(part.hosts.front()).address});
  lookup_.reset();
  starter_ = std::make_unique<ProxyStarter>(starts, order_.means, secret_);
  if (!poller_.Watch(starter_->fd(), EPOLLIN, [](uint32_t) {})) return Fail({1, kNoRoom});
  OrderThoseBelow();
}

// Once the proxies of this process are there.
void TreeGrowth::OrderThoseBelow() {
  if (!starter_->done()) return;
  if (starter_->error()) return Fail(*starter_->error());
  poller_.Forget(starter_->fd());
  std::vector<ProxyLink> links = starter_->TakeLinks();
  starter_.reset();
  stage_ = Stage::kBelow;
  below_limit_ = Clock::now() + kGrowLimit;
  for (size_t i = 0; i < parts_.size(); ++i) {
    Branch& branch = *branches_.emplace_back(std::make_unique<Branch>());
    branch.link = std::move(links[i]);
    const Hosts& hosts = parts_[i].hosts;
    for (const GrowOrder::Host& host : hosts) branch.hosts.push_back(host.number);
    if (hosts.size() == 1) continue;
    const GrowOrder rest{{hosts.begin() + 1, hosts.end()}, order_.means};
    branch.Send({FrameType::kGrow, 0, rest.Serialize()}, branch.own_host());
    waiting_.insert(&branch);
    const auto on_ready = [this, &branch](uint32_t events) { OnBranch(branch, events); };
    if (!poller_.Watch(branch.link.connection->fd(), EPOLLIN | EPOLLOUT, on_ready)) {
      return Fail({1, kNoRoom});
    }
  }
  if (waiting_.empty()) stage_ = Stage::kDone;
}

void TreeGrowth::OnBranch(Branch& branch, uint32_t events) {
  if (!waiting_.contains(&branch)) return;
  Connection& connection = *branch.link.connection;
  bool alive = true;
  if (events & EPOLLOUT) alive = connection.Write();
  if (events & ~static_cast<uint32_t>(EPOLLOUT)) alive = connection.Read() && alive;
  if (const auto frame = connection.Next()) {
    const auto [code, why] = ParseNumberAndText(frame->payload);
    if (frame->type != FrameType::kGrown || code != 0) return Fail({code, why});
    waiting_.erase(&branch);
    poller_.Forget(connection.fd());
    if (waiting_.empty() && stage_ == Stage::kBelow) stage_ = Stage::kDone;
  } else if (!alive || connection.broken()) {
    Fail({1, "the connection to " + branch.link.host + " ended while it started proxies on other hosts"});
  } else {
    poller_.Change(connection.fd(), EPOLLIN | (connection.wants_to_write() ? EPOLLOUT : 0u));
  }
}

void TreeGrowth::ChildEnded(pid_t pid, int status) {
  if (starter_ != nullptr) {
    starter_->ChildEnded(pid, status);
    if (stage_ == Stage::kStart) OrderThoseBelow();
  }
  for (const auto& branch : branches_) {
    if (branch->link.pid == pid) branch->link.pid = -1;
  }
}

void TreeGrowth::Fail(LaunchError error) {
  if (stage_ == Stage::kDone) return;
  stage_ = Stage::kDone;
  error_ = std::move(error);
  // Their connections are closed with this, and what they have started ends.
}

std::vector<std::unique_ptr<ProxyTree::Branch>> TreeGrowth::TakeBranches() {
  return std::exchange(branches_, {});
}

}  // namespace weft::pmi
