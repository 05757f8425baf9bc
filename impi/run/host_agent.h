#ifndef IMPI_RUN_HOST_AGENT_H_
#define IMPI_RUN_HOST_AGENT_H_

#include <optional>
#include <string>
#include <vector>

#include "pmi/launch/port_range.h"
#include "transport/socket_address.h"

namespace weft::impi {

// What the agent of one of several hosts is told on its command line, which is impirun's own:
//
//   impirun --agent PORT ADDRESS[,ADDRESS]... SERVER PORT FIRST:LAST INTERFACE ADDRESS[,ADDRESS]...        -: none
struct AgentWords {
  int port = 0;                               // impirun listens there for its agents
  std::vector<std::string> client_addresses;  // at one of these
  transport::SocketAddress server;            // of the job; the agent does not connect to it
  pmi::PortRange ports;                       // where the agent may listen for other hosts
  std::string interface;                      // -iface; empty: none
  std::vector<std::string> addresses;         // that the hosts of this client announce; none: each finds out its own

  // `impirun`: the path of this program.
  std::vector<std::string> ToCommandLine(const std::string& impirun) const;
  // `words`: those behind --agent. nullopt: they do not come from ToCommandLine.
  static std::optional<AgentWords> Parse(const std::vector<std::string>& words);
};

// main() of the agent, which mpiexec has started. Returns its exit status: 0 also if the job failed and the client knows why.
int RunHostAgent(const std::vector<std::string>& words);

}  // namespace weft::impi

#endif  // IMPI_RUN_HOST_AGENT_H_
