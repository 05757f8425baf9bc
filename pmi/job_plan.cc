#include "pmi/job_plan.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace weft::pmi {
namespace {

using Inherit = EnvironmentOptions::Inherit;
using Variables = std::map<std::string, std::string>;

// What a launcher sets belongs to the job that it was set for.
bool IsLaunchers(const std::string& name) {
  return name.starts_with("PMI_") || name == "MPI_LOCALRANKID" || name == "MPI_LOCALNRANKS" || name == "HYDI_CONTROL_FD";
}

Variables Inherited(const EnvironmentOptions& local, const EnvironmentOptions& global, const Variables& own) {
  const EnvironmentOptions& which = local.inherit ? local : global;
  const Inherit inherit = which.inherit.value_or(Inherit::kAll);
  if (inherit == Inherit::kAll) return own;
  Variables listed;
  if (inherit == Inherit::kNone) return listed;
  for (const std::string& name : which.listed) {
    if (const auto found = own.find(name); found != own.end()) listed.insert(*found);
  }
  return listed;
}

Variables Parsed(const std::vector<std::string>& entries) {
  Variables variables;
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    const std::string name = entry.substr(0, equals);
    if (!IsLaunchers(name)) variables.emplace(name, entry.substr(equals + 1));
  }
  return variables;
}

StartOrder::Program ProgramOf(const ProgramOptions& options, const EnvironmentOptions& global, const Variables& own,
                              const std::string& directory) {
  StartOrder::Program program;
  program.arguments = options.arguments;
  program.directory = options.directory.value_or(directory);
  if (!program.directory.starts_with('/')) program.directory = directory + "/" + program.directory;
  Variables variables = Inherited(options.environment, global, own);
  if (variables.contains("PWD")) variables["PWD"] = program.directory;
  // Fortran programs of gfortran would keep their output back until they end: it goes into a pipe.
  variables.emplace("GFORTRAN_UNBUFFERED_PRECONNECTED", "y");
  for (const auto* set : {&global.set, &options.environment.set}) {
    for (const auto& [name, value] : *set) variables[name] = value;
  }
  for (const auto& [name, value] : variables) program.environment.push_back(name + "=" + value);
  return program;
}

std::string KvsName() {
  char host[65] = {};
  gethostname(host, sizeof(host) - 1);
  return "kvs_" + std::to_string(getpid()) + "_0_" + host;
}

}  // namespace

JobPlan MakePlan(const Options& options, const std::vector<std::string>& own_environment, const std::string& directory) {
  JobPlan plan;
  const std::vector<int> ranks = RanksOfPrograms(options);
  for (size_t program = 0; program < ranks.size(); ++program) {
    plan.program_of_rank.insert(plan.program_of_rank.end(), static_cast<size_t>(ranks[program]), static_cast<int>(program));
  }
  plan.placement = Place(HostEntries(options), plan.size());

  const Variables own = Parsed(own_environment);
  StartOrder order;
  order.job_size = plan.size();
  order.universe_size = options.universe_size.value_or(plan.size());
  order.kvs_name = KvsName();
  if (!plan.placement.mapping.empty()) order.values.emplace_back("PMI_process_mapping", plan.placement.mapping);
  for (const ProgramOptions& program : options.programs) {
    order.programs.push_back(ProgramOf(program, options.environment, own, directory));
  }
  plan.orders.assign(plan.placement.hosts.size(), order);
  for (int rank = 0; rank < plan.size(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    plan.orders[static_cast<size_t>(plan.placement.host_of_rank[at])].ranks.push_back({rank, plan.program_of_rank[at]});
  }
  return plan;
}

}  // namespace weft::pmi
