#include "pmi/chosen_hosts.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "pmi/launch/host_lookup.h"
#include "pmi/launch/remote_shell.h"
#include "pmi/slurm/allocation.h"

namespace weft::pmi {
namespace {

// The hosts that a batch system gave this process, where the command line names none, and its way to start programs on them. Why they
// cannot be understood, or empty.
std::string TakeAllocation(Options* options) {
  if (!options->takes_allocation) return {};
  auto hosts = slurm::HostsOfAllocation(secure_getenv);
  if (!hosts) return options->hosts.empty() ? hosts.error().message : std::string();
  if (hosts.value().empty()) return {};
  if (options->hosts.empty()) options->hosts = std::move(hosts).value();
  if (!options->launcher) options->launcher = RemoteShell::Slurm();
  return TooManyRanks(*options);
}

// Where -skip-launch-node wants it: hosts without this one. Why there are none, or empty.
std::string LeaveThisHostOut(Options* options) {
  if (!options->skips_this_host) return {};
  std::vector<std::string> names;
  for (const HostSlots& host : options->hosts) names.push_back(host.name);
  const auto facts = LookUpHosts(names);
  size_t at = 0;
  std::erase_if(options->hosts, [&](const HostSlots&) { return facts[at++].is_this; });
  return options->hosts.empty() ? "-skip-launch-node: only this host is named; name others with -hosts or -f" : "";
}

}  // namespace

std::string ChooseHosts(Options* options) {
  std::string problem = TakeAllocation(options);
  return problem.empty() ? LeaveThisHostOut(options) : problem;
}

}  // namespace weft::pmi
