#ifndef IMPI_RUN_AGENT_GREETING_H_
#define IMPI_RUN_AGENT_GREETING_H_

#include <cstddef>
#include <string>

#include "base/job_secret.h"

namespace weft::impi {

// The first words between a client with several hosts and the agent of one of them. Each proves that it knows the secret of the mpiexec that started the
// agents, which mpiexec's proxies pass on to their processes (pmi/launch/remote_start.h):
//
//   client        weft-impirun NONCE\n
//   agent         weft-impi-agent NUMBER NONCE PROOF\n        number: of its host, among those of the client
//   client        weft-impirun PROOF\n                        from here on commands (impi/client/report.h)

// Of the secret of mpiexec's job, so that no proof here is one for its proxies.
JobSecret SecretOfAgents(const JobSecret& secret);

// The agent's end, on a connected socket. False: the peer does not know the secret. `closed`: it hung up, perhaps for want of room.
bool GreetClient(int fd, const JobSecret& secret, size_t number, bool* closed);

// The client's end, on a socket that does not block.
class AgentGreeting {
 public:
  // Sends the first line. `fd` outlives it. `agents`: how many there are.
  AgentGreeting(int fd, const JobSecret& secret, size_t agents);

  // What became of it, when the socket can be read.
  enum class State { kWaits, kRefused, kIsAgent };
  State Read();
  // In kIsAgent.
  size_t number() const { return number_; }

 private:
  State Admit();

  const int fd_;
  const JobSecret secret_;
  const size_t agents_;
  const std::string nonce_;
  std::string text_;
  size_t number_ = 0;
};

}  // namespace weft::impi

#endif  // IMPI_RUN_AGENT_GREETING_H_
