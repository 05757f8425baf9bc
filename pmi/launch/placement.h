#ifndef PMI_LAUNCH_PLACEMENT_H_
#define PMI_LAUNCH_PLACEMENT_H_

#include <string>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// One entry of -hosts or of a host file: the number of consecutive ranks on the host before the next entry is used.
struct HostSlots {
  std::string name;
  int slots = 1;
  bool operator==(const HostSlots&) const = default;
};

// The host of each rank.
struct Placement {
  std::vector<std::string> hosts;  // without duplicates, in the order of first mention
  std::vector<int> host_of_rank;   // index into `hosts`
  // the value of PMI_process_mapping: (vector,(first host,hosts,ranks on each),...); empty: too long
  std::string mapping;
};

// Fills the entries in order, repeatedly, until `size` ranks have a place, as hydra does.
Placement Place(const std::vector<HostSlots>& entries, int size);

// "a,b:2,[fe80::1]:4". IPv6 addresses need brackets if they are followed by a number.
Result<std::vector<HostSlots>, PmiError> ParseHosts(const std::string& list);
// A host file: one host, or host:number, per line. Text after '#' or a blank is ignored. `name` is for messages.
Result<std::vector<HostSlots>, PmiError> ParseHostFile(const std::string& text, const std::string& name);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_PLACEMENT_H_
