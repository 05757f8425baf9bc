// Hosts of jobs, and the proxies that are started on them.
#include <algorithm>
#include <utility>

#include "pmi/launch/launcher.h"

namespace weft::pmi {

std::vector<size_t> Launcher::HostsNamed(const std::vector<std::string>& names, std::vector<std::string>* missing) const {
  std::vector<size_t> found;
  for (const std::string& name : names) {
    const auto host = std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& one) { return one.open && one.name == name; });
    if (host == hosts_.end()) {
      missing->push_back(name);
    } else {
      found.push_back(static_cast<size_t>(host - hosts_.begin()));
    }
  }
  return found;
}

void Launcher::AwaitHosts(Job& job) {
  std::vector<std::string> missing;
  job.hosts = HostsNamed(job.plan.placement.hosts, &missing);
  if (missing.empty()) return OnHostsThere(job);
  job.hosts.clear();
  wait_for_growth_.push_back(job.number);
  StartGrowth();
}

// For the first that needs one; what an earlier one started is there then.
void Launcher::StartGrowth() {
  while (growth_ == nullptr && !wait_for_growth_.empty()) {
    Job* job = Find(wait_for_growth_.front());
    std::vector<std::string> missing;
    std::vector<size_t> hosts;
    if (job != nullptr && job->awaits_hosts) hosts = HostsNamed(job->plan.placement.hosts, &missing);
    if (missing.empty()) {
      wait_for_growth_.pop_front();
      if (job == nullptr || !job->awaits_hosts) continue;  // it ended meanwhile
      job->hosts = std::move(hosts);
      OnHostsThere(*job);
      continue;
    }
    StartMeans means{options_.launcher.value_or(RemoteShell::Ssh()), options_.interface, options_.ports, options_.most_branches};
    means.remote_shell.more_arguments = options_.launcher_arguments;
    growth_order_ = {{}, std::move(means)};
    for (const std::string& name : missing) {
      growth_order_.hosts.push_back({static_cast<int32_t>(hosts_.size() + growth_order_.hosts.size()), name});
    }
    growth_ = std::make_unique<TreeGrowth>(growth_order_, secret_);
  }
}

void Launcher::StepGrowth() {
  if (growth_ == nullptr) return;
  const Job* job = Find(wait_for_growth_.front());
  if (job == nullptr || !job->awaits_hosts) {
    growth_.reset();  // nobody waits for it any more
    wait_for_growth_.pop_front();
    return StartGrowth();
  }
  growth_->Step();
  if (growth_->done()) EndGrowth();
}

void Launcher::EndGrowth() {
  const auto error = growth_->error();
  if (!error) {
    tree_.Add(growth_->TakeBranches());
    for (const auto& [number, name] : growth_order_.hosts) {
      ProxyTree::Branch* branch = tree_.To(number);
      hosts_.push_back({name, branch, branch->link.is_local, true});
    }
  }
  growth_.reset();
  if (error) {
    Job* job = Find(wait_for_growth_.front());
    wait_for_growth_.pop_front();
    OnHostsMissing(*job, *error);
  }
  StartGrowth();
}

void Launcher::OnHostsThere(Job& job) {
  job.awaits_hosts = false;
  const std::string problem = SendOrders(job);
  if (!problem.empty()) OnHostsMissing(job, {1, problem});
}

void Launcher::OnHostsMissing(Job& job, const LaunchError& error) {
  job.hosts.clear();
  job.open.clear();
  if (job.asker) {
    FailSpawn(job, error.message);
  } else {
    EndJob(job, error.exit_code, error.message, std::chrono::milliseconds(0));
  }
}

}  // namespace weft::pmi
