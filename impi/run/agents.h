#ifndef IMPI_RUN_AGENTS_H_
#define IMPI_RUN_AGENTS_H_

#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/job_secret.h"
#include "base/result.h"
#include "impi/client/agent_group.h"
#include "impi/run/agent_greeting.h"
#include "impi/run/agents_process.h"
#include "impi/run/client_options.h"
#include "pmi/launch/options.h"
#include "pmi/launch/outbox.h"
#include "pmi/launch/poller.h"
#include "transport/socket_address.h"

namespace weft::impi {

// The sockets of an AgentGroup: starts the agents (host_agent.h) with mpiexec, lets them in, and carries what they and the client say.
class Agents {
 public:
  // Starts them; Wait until group().stage() changes. `hosts`: one agent on each, as mpiexec's command line names them. `addresses`: that the user named for
  // these hosts; none: each finds out its own. Why not: a sentence.
  static Result<std::unique_ptr<Agents>, std::string> Start(const ClientOptions& options, const pmi::Options& mpiexec, const std::vector<std::string>& hosts,
                                                            const std::vector<std::string>& addresses, const transport::SocketAddress& server);

  AgentGroup& group() { return group_; }
  // Waits for one event: of an agent, or of what the caller has added to `poller`. Prints the agents' warnings. `most`: milliseconds, once all agents are there; negative: no limit.
  void Wait(pmi::Poller& poller, int most = -1);
  // Why the agents cannot all be there: mpiexec has ended, or the time for them to come is over.
  const std::optional<std::string>& problem() const { return problem_; }
  // Sends what is to be sent, for a few seconds at most.
  void Flush();
  // All agents end, and so does mpiexec.
  void End();

 private:
  using Clock = std::chrono::steady_clock;

  struct Stranger {
    Stranger(Descriptor socket, const JobSecret& secret, size_t agents) : fd(std::move(socket)), greeting(fd.get(), secret, agents), since(Clock::now()) {}
    Descriptor fd;
    AgentGreeting greeting;
    Clock::time_point since;
    bool over = false;
  };
  struct Link {
    Descriptor fd;
    pmi::Outbox out;
  };

  Agents(ClientRank client, const std::vector<std::string>& hosts, const JobSecret& secret, Descriptor listener);
  int Patience(int most) const;
  void Accept();
  void ReadGreeting(Stranger& stranger);
  void Read(size_t agent);
  void Write(size_t agent);
  void TakeOutput();
  void OnTime();
  bool all_are_here() const;

  const JobSecret secret_;
  AgentGroup group_;
  Descriptor listener_;
  const Clock::time_point comes_by_;
  Clock::time_point listen_again_{};
  std::list<Stranger> strangers_;  // connections that have not said which agent they are
  std::vector<Link> links_;        // by agent
  std::optional<AgentsProcess> process_;
  std::optional<std::string> problem_;
};

}  // namespace weft::impi

#endif  // IMPI_RUN_AGENTS_H_
