#ifndef IMPI_RUN_CARRY_H_
#define IMPI_RUN_CARRY_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "impi/agent/agent.h"
#include "impi/job/job.h"

namespace weft::impi {

// What is watched beside the packets, such as the connection to the server: when it can be read, `look` says why the job has failed, if it has.
struct Watched {
  int fd = -1;
  std::function<std::optional<std::string>()> look;
};

// The sockets of an Agent, until its job ends. `hosts`: of each host of other clients; `processes`: stream sockets, in the order of the ranks of this host.
// Takes what both hold, in one thread. Returns nothing if the job ended in order, or why it did not; then all connections are closed, and all others hear of it.
std::optional<std::string> CarryPackets(const Job& job, const Agent::Setup& setup, std::map<HostRank, Descriptor> hosts, std::vector<Descriptor> processes,
                                        const std::vector<Watched>& watched);

}  // namespace weft::impi

#endif  // IMPI_RUN_CARRY_H_
