#include "pmi/launch/job_plan.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

#include "pmi/launch/host_file.h"
#include "pmi/process_mapping.h"
#include "pmi/wire/message.h"

namespace weft::pmi {
namespace {

using Inherit = EnvironmentOptions::Inherit;
using Variables = std::map<std::string, std::string>;

// What a launcher sets belongs to the job that it was set for; and who is alone (WEFT_PMI) does not say so for what he starts.
bool IsLaunchers(const std::string& name, const std::string& value) {
  if (name == "WEFT_PMI" && value == "alone") return true;
  if (name == "WEFT_PMI_SECRET_FILE") return true;  // of those that come to a port
  if (name == "WEFT_IMPI_AGENT") return true;       // impi/entry/hello.h
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
    const std::string value = entry.substr(equals + 1);
    if (!IsLaunchers(name, value)) variables.emplace(name, value);
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

std::string KvsName(int job) {
  char host[65] = {};
  gethostname(host, sizeof(host) - 1);
  return "kvs_" + std::to_string(getpid()) + "_" + std::to_string(job) + "_" + host;
}

// One order for each host, from `order`, which all have in common.
void DivideRanks(const StartOrder& order, JobPlan* plan) {
  plan->orders.assign(plan->placement.hosts.size(), order);
  for (int rank = 0; rank < plan->size(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    plan->orders[static_cast<size_t>(plan->placement.host_of_rank[at])].ranks.push_back({rank, plan->program_of_rank[at]});
  }
}

// What the info keys of one program of a spawn say.
struct SpawnInfo {
  std::vector<HostSlots> hosts;
  std::string directory;
  std::string path;
  int processes = 0;
};

Result<SpawnInfo, PmiError> ReadInfo(const SpawnCommand& command, std::vector<std::string>* notes) {
  SpawnInfo info;
  info.processes = command.processes;
  for (const auto& [key, value] : command.info) {
    const auto wrong = [&, name = &key](const PmiError& error) { return PmiError{"info key " + *name + ": " + error.message}; };
    if (key == "host" || key == "hosts" || key == "hostfile") {
      auto hosts = key == "hostfile" ? ReadHostFile(value, Accepts::kFiles) : ParseHosts(value);
      if (!hosts) return wrong(hosts.error());
      info.hosts = *std::move(hosts);
    } else if (key == "wdir") {
      info.directory = value;
    } else if (key == "path") {
      info.path = value;
    } else if (key == "soft") {
      const auto count = SoftCount(value, command.processes);
      if (!count) return wrong(count.error());
      info.processes = *count;
    } else if (key == "file" || key == "arch") {
      notes->push_back("the info key " + key + "=" + Printable(value) + " of a spawn of " + Printable(command.program) + " is ignored");
    }  // what nobody knows is ignored (MPI 4.0 section 10)
  }
  return info;
}

}  // namespace

Result<int, PmiError> SoftCount(const std::string& soft, int most) {
  int best = -1;
  for (size_t at = 0; at <= soft.size();) {
    const size_t comma = std::min(soft.find(',', at), soft.size());
    const std::string range = soft.substr(at, comma - at);
    at = comma + 1;
    std::vector<std::optional<int>> numbers;
    for (size_t begin = 0; begin <= range.size();) {
      const size_t colon = std::min(range.find(':', begin), range.size());
      numbers.push_back(ParseInt(std::string_view(range).substr(begin, colon - begin)));
      begin = colon + 1;
    }
    const bool good = numbers.size() <= 3 && std::all_of(numbers.begin(), numbers.end(), [](const auto& n) { return n.has_value(); }) &&
                      (numbers.size() < 3 || *numbers[2] != 0);
    if (!good) return PmiError{"'" + Printable(range) + "' is not a number or FIRST:LAST or FIRST:LAST:STEP"};
    const long first = *numbers[0], last = numbers.size() > 1 ? *numbers[1] : first, step = numbers.size() > 2 ? *numbers[2] : 1;
    if (step > 0 ? first > last : first < last) continue;  // no number at all
    // The largest of first, first + step, ... that is not above `most`.
    const long end = first + (last - first) / step * step;
    const long top = std::max(first, end), bottom = std::min(first, end), stride = std::abs(step);
    const long found = top <= most ? top : top - (top - most + stride - 1) / stride * stride;
    if (found >= bottom && found >= 0) best = std::max(best, static_cast<int>(found));
  }
  if (best >= 0) return best;
  return PmiError{"'" + Printable(soft) + "' allows no number of processes from 0 to " + std::to_string(most)};
}

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
  order.universe_size = UniverseSize(options);
  order.bind_to = options.bind_to;
  order.map_by = options.map_by;
  order.kvs_name = KvsName(0);
  if (!plan.placement.mapping.empty()) order.values.emplace_back("PMI_process_mapping", plan.placement.mapping);
  if (options.goes_on) order.values.emplace_back(kDeathsKey, "yes");
  for (const ProgramOptions& program : options.programs) {
    order.programs.push_back(ProgramOf(program, options.environment, own, directory));
    for (const auto& [name, value] : options.first_job) order.programs.back().environment.push_back(name + "=" + value);
  }
  DivideRanks(order, &plan);
  const auto& [name, values] = options.first_job_by_host;
  for (size_t host = 0; host < values.size() && host < plan.orders.size(); ++host) {
    for (StartOrder::Program& program : plan.orders[host].programs) program.environment.push_back(name + "=" + values[host]);
  }
  return plan;
}

Result<JobPlan, PmiError> MakeSpawnPlan(const ask::Spawn& spawn, const Options& options, const std::vector<std::string>& own_environment,
                                        const std::string& directory, int number, const std::string& spawner) {
  JobPlan plan;
  StartOrder order;
  order.kvs_name = KvsName(number);
  order.spawner = spawner;
  const Variables own = Parsed(own_environment);
  std::vector<std::string>& hosts = plan.placement.hosts;
  for (const SpawnCommand& command : spawn.commands) {
    if (command.program.empty()) return PmiError{"the name of a program is empty"};
    const auto info = ReadInfo(command, &plan.notes);
    if (!info) return info.error();
    ProgramOptions program;
    program.arguments = {command.program};
    program.arguments.insert(program.arguments.end(), command.arguments.begin(), command.arguments.end());
    if (!info->directory.empty()) program.directory = info->directory;
    order.programs.push_back(ProgramOf(program, options.environment, own, directory));
    order.programs.back().search_path = info->path;
    plan.errors.resize(plan.errors.size() + static_cast<size_t>(info->processes), 0);
    plan.errors.resize(plan.errors.size() + static_cast<size_t>(command.processes - info->processes), 1);
    if (info->processes == 0) continue;
    const Placement part = Place(info->hosts.empty() ? HostEntries(options) : info->hosts, info->processes);
    for (const int host : part.host_of_rank) {
      const std::string& name = part.hosts[static_cast<size_t>(host)];
      const auto known = std::find(hosts.begin(), hosts.end(), name);
      plan.placement.host_of_rank.push_back(static_cast<int>(known - hosts.begin()));
      if (known == hosts.end()) hosts.push_back(name);
      plan.program_of_rank.push_back(static_cast<int>(order.programs.size()) - 1);
    }
  }
  if (plan.size() == 0) return PmiError{"a spawn of no process"};
  order.job_size = plan.size();
  order.universe_size = options.universe_size.value_or(-1);
  order.bind_to = options.bind_to;
  order.map_by = options.map_by;
  plan.placement.mapping = ProcessMapping::Of(std::span<const int>(plan.placement.host_of_rank)).ToString();
  if (plan.placement.mapping.size() < kValueMax) order.values.emplace_back("PMI_process_mapping", plan.placement.mapping);
  order.values.emplace_back(kSpawnerKey, spawner);
  if (options.goes_on) order.values.emplace_back(kDeathsKey, "yes");
  order.values.insert(order.values.end(), spawn.preput.begin(), spawn.preput.end());
  DivideRanks(order, &plan);
  return plan;
}

}  // namespace weft::pmi
