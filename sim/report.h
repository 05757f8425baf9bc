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

// The reports of a process about its RNIC.
namespace weft::sim {

using Snapshots = std::vector<QueuePairSnapshot>;

// For `weft stat`: one line for the process, one for each queue pair and one for each path, as KEY=VALUE separated by
// tabs (tools/weft/stat.cc reads them).
std::string Describe(Persona persona, const Snapshots& queue_pairs, const std::vector<llp::PathState>& paths);
// For WEFT_STATS=1, at exit: destroyed queue pairs, existing queue pairs, and faults.
std::string Summarize(const Snapshots& destroyed, const Snapshots& queue_pairs);

// As long as the result lives, answers `weft stat` with the result of `describe`, and `weft faults` from the process's
// injector. nullptr: no socket is available.
std::shared_ptr<void> ServeRequests(transport::Network& network, std::function<std::string()> describe);

}  // namespace weft::sim

#endif  // SIM_REPORT_H_
