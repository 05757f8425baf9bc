// How many ranks a command line asks for, and where.
#include <algorithm>
#include <numeric>

#include "pmi/launch/options.h"

namespace weft::pmi {

std::string TooManyRanks(const Options& options) {
  long total = 0;
  for (const int count : RanksOfPrograms(options)) total += count;
  if (total <= kMostRanks) return {};
  return std::to_string(total) + " ranks are more than " + std::to_string(kMostRanks) + (options.programs[0].ranks ? "" : "; -n sets the number of ranks");
}

std::vector<HostSlots> HostEntries(const Options& options) {
  std::vector<HostSlots> entries = options.hosts;
  if (entries.empty()) return {{"localhost", 1}};
  if (options.ranks_per_host) {
    for (HostSlots& entry : entries) entry.slots = *options.ranks_per_host;
  }
  return entries;
}

std::vector<int> RanksOfPrograms(const Options& options) {
  int room = 0;
  for (const HostSlots& host : options.hosts) room += options.ranks_per_host.value_or(host.slots);
  std::vector<int> ranks;
  for (const ProgramOptions& program : options.programs) {
    ranks.push_back(program.ranks.value_or(options.programs.size() == 1 && room > 0 ? room : 1));
  }
  return ranks;
}

int UniverseSize(const Options& options) {
  if (!options.universe_is_hosts) return options.universe_size.value_or(-1);
  const std::vector<int> ranks = RanksOfPrograms(options);
  const int total = std::accumulate(ranks.begin(), ranks.end(), 0);
  int room = 0;
  for (const HostSlots& host : HostEntries(options)) room += host.slots;
  return std::max(room, total);
}

}  // namespace weft::pmi
