#ifndef IMPI_CLIENT_AGENT_GROUP_H_
#define IMPI_CLIENT_AGENT_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "impi/client/report.h"
#include "impi/job/ranks.h"
#include "impi/wire/command.h"

namespace weft::impi {

// The agents of a client with several hosts, as the client sees them: at which stage they are, and whose fault it is if the job fails. An agent has the number
// of its host among the client's. No I/O and no clock. Nothing calls back: after each event, the owner looks at stage(), TakeOutput() and TakeWarnings().
class AgentGroup {
 public:
  enum class Stage : uint8_t {
    kStarting,    // an agent has not said where it is
    kPlaced,      // all have: places(), then Begin
    kConnecting,  // an agent is not connected with all hosts of the other clients
    kRunning,     // all are: the ranks may start
    kEnded,       // all FINIs are through
    kFailed,      // reason()
  };

  // `hosts`: as the user named them.
  AgentGroup(ClientRank client, std::vector<std::string> hosts);

  ClientRank client() const { return client_; }
  // In kStarting: the first host whose agent has not said where it is, such as "host 'b' of client 1".
  std::string MissingHost() const;
  // What an agent sent.
  void OnBytes(size_t agent, ByteSpan bytes);
  // Its connection has ended: it died, or its host did.
  void OnClosed(size_t agent);

  // Of the agent that is behind all others.
  Stage stage() const;
  // In kFailed: of the first failure; but one of this client, if it becomes known later, takes the place of one elsewhere (OnFirstDeath: of another here).
  // Names the client, the host, and what to do where that is known.
  const std::string& reason() const { return KnowsFirstDeath() ? agents_[*first_death_].reason : reason_; }
  // In kFailed: an agent or a process of this client is why. Else it was elsewhere.
  bool failed_here() const { return failed_here_; }
  // By agent; from kPlaced on.
  const std::vector<HereReport>& places() const { return places_; }

  // In kPlaced. `first`: the number of the first of these hosts in the job, which the others follow. `welcome`: a whole WLCM command.
  void Begin(HostRank first, const Bytes& welcome);
  // mpiexec has ended. `how`: behind the name of a process that has not called MPI_Init, if there is one.
  void OnRanksEnded(const std::string& how);
  // mpiexec has ended the ranks because of one on this agent's host. The others, which it ended, may be what became known first: the reason is what this agent
  // says of its own processes.
  void OnFirstDeath(size_t agent) { first_death_ = agent; }
  // Whether that is still to come.
  bool AwaitsFirstDeath() const { return first_death_ && !KnowsFirstDeath(); }
  // The agents close the connections of their processes.
  void CloseProcesses() { SendToAll({kShutCommand, {}}); }
  // The agents close all connections, and end. What they say after this does not count.
  void Quit();

  // What is to be sent to an agent; empty: nothing.
  Bytes TakeOutput(size_t agent);
  // For the user.
  std::vector<std::string> TakeWarnings();
  std::string NameOf(size_t agent) const;

 private:
  struct Agent {
    CommandReader reader{kLongestReport};
    Bytes output;
    Stage stage = Stage::kStarting;
    bool closed = false;
    std::string reason;  // of the first failure of its own host; empty: none
  };

  void Obey(size_t agent, const Command& command);
  void SendToAll(const Command& command);
  void Fail(size_t agent, bool here, const std::string& reason);
  bool KnowsFirstDeath() const { return first_death_ && !agents_[*first_death_].reason.empty(); }

  const ClientRank client_;
  const std::vector<std::string> hosts_;
  std::vector<Agent> agents_;
  std::vector<HereReport> places_;
  HostRank first_;
  bool quits_ = false;
  bool failed_ = false, failed_here_ = false;
  std::string reason_;
  std::optional<size_t> first_death_;
  std::vector<std::string> warnings_;
};

}  // namespace weft::impi

#endif  // IMPI_CLIENT_AGENT_GROUP_H_
