#include "pmi/slurm/allocation.h"

#include <algorithm>
#include <optional>

#include "pmi/slurm/node_list.h"
#include "pmi/wire/message.h"

namespace weft::pmi::slurm {
namespace {

constexpr int kMostTasks = 65536;  // on one host

constexpr char kNodes[] = "SLURM_JOB_NODELIST", kTasks[] = "SLURM_TASKS_PER_NODE";
constexpr char kCpus[] = "SLURM_JOB_CPUS_PER_NODE", kCpusPerTask[] = "SLURM_CPUS_PER_TASK";

std::string Quoted(const std::string& text) { return "'" + Printable(text) + "'"; }

std::string ValueOf(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? std::string() : value;
}

std::optional<int> ParseCount(const std::string& text, int most) {
  const std::optional<int> count = ParseInt(text);
  return count && *count >= 1 && *count <= most ? count : std::nullopt;
}

// "2" or "2(x3)", appended.
bool AppendCounts(const std::string& entry, std::vector<int>* counts) {
  const size_t open = entry.find("(x");
  int times = 1;
  if (open != entry.npos) {
    if (entry.back() != ')') return false;
    const auto repeated = ParseCount(entry.substr(open + 2, entry.size() - open - 3), static_cast<int>(kMostNodes));
    if (!repeated) return false;
    times = *repeated;
  }
  const auto count = ParseCount(entry.substr(0, open), kMostTasks);
  if (!count || counts->size() + static_cast<size_t>(times) > kMostNodes) return false;
  counts->insert(counts->end(), static_cast<size_t>(times), *count);
  return true;
}

// The counts in the variable `name`, when it has one for each of `nodes`. Nothing: it is not set, or speaks of other
// nodes.
Result<std::optional<std::vector<int>>, PmiError> CountsFor(size_t nodes, const Environment& environment,
                                                            const char* name) {
  const std::string text = ValueOf(environment, name);
  if (text.empty()) return std::optional<std::vector<int>>();
  auto counts = ExpandCounts(text);
  if (!counts) return PmiError{std::string(name) + ": " + counts.error().message};
  if (counts->size() != nodes) return std::optional<std::vector<int>>();
  return std::optional<std::vector<int>>(std::move(counts).value());
}

// So many processors for each rank; 1 where nobody says.
Result<int, PmiError> CpusPerTask(const Environment& environment) {
  const std::string text = ValueOf(environment, kCpusPerTask);
  if (text.empty()) return 1;
  const auto count = ParseCount(text, kMostTasks);
  if (!count) return PmiError{std::string(kCpusPerTask) + "=" + Printable(text) + " is not a number of 1 or more"};
  return *count;
}

Result<std::vector<int>, PmiError> RanksOn(size_t nodes, const Environment& environment) {
  auto tasks = CountsFor(nodes, environment, kTasks);
  if (!tasks) return tasks.error();
  if (*tasks) return **tasks;
  auto cpus = CountsFor(nodes, environment, kCpus);
  if (!cpus) return cpus.error();
  const auto cpus_per_task = CpusPerTask(environment);
  if (!cpus_per_task) return cpus_per_task.error();
  if (*cpus) {
    for (int& count : **cpus) count = std::max(1, count / cpus_per_task.value());
    return **cpus;
  }
  return PmiError{std::string(kNodes) + "=" + Printable(ValueOf(environment, kNodes)) + " names " +
                  std::to_string(nodes) + (nodes == 1 ? " host" : " hosts") + ", but neither " + kTasks + "=" +
                  Printable(ValueOf(environment, kTasks)) + " nor " + kCpus + "=" +
                  Printable(ValueOf(environment, kCpus)) + " has as many numbers; name the hosts with -hosts"};
}

}  // namespace

Result<std::vector<int>, PmiError> ExpandCounts(const std::string& counts) {
  std::vector<int> expanded;
  for (size_t at = 0; at <= counts.size();) {
    const size_t comma = std::min(counts.find(',', at), counts.size());
    const std::string entry = counts.substr(at, comma - at);
    if (!AppendCounts(entry, &expanded)) {
      return PmiError{"in the numbers " + Quoted(counts) + ", " + Quoted(entry) + " is neither a number from 1 to " +
                      std::to_string(kMostTasks) + " nor one with (xTIMES) behind it, for at most " +
                      std::to_string(kMostNodes) + " hosts"};
    }
    at = comma + 1;
  }
  return expanded;
}

Result<std::vector<HostSlots>, PmiError> HostsOfAllocation(const Environment& environment) {
  const std::string list = ValueOf(environment, kNodes);
  if (list.empty() || ValueOf(environment, "SLURM_JOB_ID").empty()) return std::vector<HostSlots>();
  const auto names = ExpandNodeList(list);
  if (!names) return PmiError{std::string(kNodes) + ": " + names.error().message};
  const auto ranks = RanksOn(names->size(), environment);
  if (!ranks) return ranks.error();
  std::vector<HostSlots> hosts;
  for (size_t i = 0; i < names->size(); ++i) hosts.push_back({.name = names.value()[i], .slots = ranks.value()[i]});
  return hosts;
}

}  // namespace weft::pmi::slurm
