#ifndef IMPI_RUN_ENTER_H_
#define IMPI_RUN_ENTER_H_

#include <chrono>
#include <map>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "impi/entry/hello.h"
#include "impi/entry/welcome.h"
#include "impi/job/ranks.h"

namespace weft::impi {

// A process's place in the job: its connection to the agent of its host, which does not block.
struct Entered {
  Descriptor agent;
  // Empty: `agent` carries packets from now on. Else this process takes the agent's place (entry/hello.h): its connections with all hosts of other clients.
  std::map<HostRank, Descriptor> hosts;
  Welcome welcome;
};

// Connects a process to its agent, and waits for the answer; for the MPI library, in MPI_Init. `address`: the value of kAgentVariable. The agent has to run for this user. Why not: a sentence that says what to do.
//
// What follows on a connection that carries packets: the process sends packets in its own name to processes of other clients, and takes all that comes, also while it waits to
// send (impi/agent/agent.h). When it is over, it sends one FINI (the other fields do not matter), sends nothing more, and may close at once: the agent
// acknowledges what still comes. Packets that were on their way then may still be read. If the agent closes before, the job has failed, and impirun says why.
Result<Entered, std::string> EnterJob(const std::string& address, const Hello& hello, std::chrono::seconds patience = std::chrono::seconds(60));

}  // namespace weft::impi

#endif  // IMPI_RUN_ENTER_H_
