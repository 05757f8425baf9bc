#ifndef IMPI_RUN_OWN_HOST_H_
#define IMPI_RUN_OWN_HOST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "impi/agent/agent.h"
#include "impi/job/job.h"
#include "impi/wire/packet.h"
#include "transport/socket_address.h"

namespace weft::impi {

inline constexpr int kMostRanks = 1 << 15;  // of a client: see NamesOf

// What this host announces: `address`, if the user named one; that of `interface`; or the one from which it reaches the server. `otherwise` is taken if that
// is a loopback address; empty: it is not. Why not: a sentence.
Result<HostId, std::string> OwnHostId(const std::string& address, const std::string& interface, const transport::SocketAddress& server,
                                      const std::string& otherwise);

// IMPI_P_PID has to differ among all processes that announce this address, also of other clients on this host. Ports do. The number fits into 31 bits, and
// is above those that Linux gives to processes, which LAM announces.
std::vector<ProcessName> NamesOf(const HostId& host, int port, int count);

// The agent of a host, with its share of memory. `lam_clients`: mask.
Agent::Setup AgentFor(const Job& job, HostRank host, uint32_t lam_clients);

// Whether this process may have a descriptor for each connection of an agent. Why not, or empty. `hosts`: of other clients.
std::string CheckFiles(int ranks, int hosts);

}  // namespace weft::impi

#endif  // IMPI_RUN_OWN_HOST_H_
