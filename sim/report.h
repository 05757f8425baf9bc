#ifndef SIM_REPORT_H_
#define SIM_REPORT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.h"
#include "llp/handshake.h"
#include "sim/queues/statistics.h"
#include "transport/network.h"

// What a process says of its RNIC.
namespace weft::sim {

using Snapshots = std::vector<QueuePairSnapshot>;

// For `weft stat`: one line for the process, one for each queue pair and one for each path, KEY=VALUE with tabs between (tools/weft/stat.cc reads it).
std::string Describe(Persona persona, const Snapshots& queue_pairs, const std::vector<llp::PathState>& paths);
// For WEFT_STATS=1, at exit: of queue pairs that were destroyed, of those that there are, and of faults.
std::string Summarize(const Snapshots& destroyed, const Snapshots& queue_pairs);

// Answers `weft stat` with what `describe` returns, and `weft faults` from the process's injector, for as long as the result lives. Null: there
// is no socket for it.
std::shared_ptr<void> ServeRequests(transport::Network& network, std::function<std::string()> describe);

}  // namespace weft::sim

#endif  // SIM_REPORT_H_
