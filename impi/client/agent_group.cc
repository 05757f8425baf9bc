#include "impi/client/agent_group.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace weft::impi {

AgentGroup::AgentGroup(ClientRank client, std::vector<std::string> hosts)
    : client_(client), hosts_(std::move(hosts)), agents_(hosts_.size()), places_(hosts_.size()) {
  WEFT_CHECK(!hosts_.empty());
}

std::string AgentGroup::NameOf(size_t agent) const {
  const std::string client = " of client " + std::to_string(client_.value);
  switch (agents_[agent].stage) {
    case Stage::kStarting:
      return "host '" + hosts_[agent] + "'" + client;
    case Stage::kPlaced:
      return "host '" + hosts_[agent] + "'" + client + " (" + TextOf(places_[agent].address) + ")";
    default:
      return "host " + std::to_string(first_.value + static_cast<int32_t>(agent)) + client + " (" + TextOf(places_[agent].address) + ", '" + hosts_[agent] + "')";
  }
}

AgentGroup::Stage AgentGroup::stage() const {
  if (failed_) return Stage::kFailed;
  return std::min_element(agents_.begin(), agents_.end(), [](const Agent& a, const Agent& b) { return a.stage < b.stage; })->stage;
}

std::string AgentGroup::MissingHost() const {
  const auto missing = std::find_if(agents_.begin(), agents_.end(), [](const Agent& agent) { return agent.stage == Stage::kStarting; });
  WEFT_CHECK(missing != agents_.end());
  return NameOf(static_cast<size_t>(missing - agents_.begin()));
}

void AgentGroup::OnBytes(size_t agent, ByteSpan bytes) {
  if (quits_ || !agents_[agent].reason.empty()) return;
  CommandReader& reader = agents_[agent].reader;
  reader.Append(bytes);
  while (const auto command = reader.NextCommand()) {
    Obey(agent, *command);
    if (!agents_[agent].reason.empty()) return;
  }
  if (const auto length = reader.refused_length()) {
    Fail(agent, true, "the agent of " + NameOf(agent) + " sent a command of " + std::to_string(*length) + " bytes; use one release of Weft on all hosts");
  }
}

void AgentGroup::Obey(size_t agent, const Command& command) {
  Stage& stage = agents_[agent].stage;
  if (command.code == kWarnCommand) {
    warnings_.push_back("host '" + hosts_[agent] + "': " + TextOf(command));
  } else if (const auto fail = FailReport::From(command)) {
    // Before the ranks run, an agent does not know how the user calls its host.
    Fail(agent, fail->by_process, stage < Stage::kRunning ? NameOf(agent) + ": " + fail->why : fail->why);
  } else if (const auto here = HereReport::From(command); here && stage == Stage::kStarting) {
    places_[agent] = *here;
    stage = Stage::kPlaced;
  } else if (command.code == kConnectedCommand && stage == Stage::kConnecting) {
    stage = Stage::kRunning;
  } else if (command.code == kOverCommand && stage == Stage::kRunning) {
    stage = Stage::kEnded;
  } else {
    Fail(agent, true, "the agent of " + NameOf(agent) + " sent " + impi::NameOf(command.code) + ", which is not expected now; use one release of Weft on all hosts");
  }
}

// An agent whose FINIs are through is not needed any more.
void AgentGroup::OnClosed(size_t agent) {
  Agent& one = agents_[agent];
  if (std::exchange(one.closed, true) || quits_ || one.stage == Stage::kEnded) return;
  Fail(agent, true, "the agent of " + NameOf(agent) + " ended before the job did, or its host is lost; mpiexec's messages may say why");
}

void AgentGroup::Begin(HostRank first, const Bytes& welcome) {
  WEFT_CHECK(stage() == Stage::kPlaced);
  first_ = first;
  for (size_t agent = 0; agent < agents_.size(); ++agent) {
    agents_[agent].stage = Stage::kConnecting;
    agents_[agent].output = WorkOrder{HostRank(first.value + static_cast<int32_t>(agent)), welcome}.ToCommand().Serialize();
  }
}

void AgentGroup::OnRanksEnded(const std::string& how) { SendToAll(CommandOfText(kGoneCommand, how)); }

void AgentGroup::Quit() {
  SendToAll({kQuitCommand, {}});
  quits_ = true;
}

void AgentGroup::SendToAll(const Command& command) {
  const Bytes bytes = command.Serialize();
  for (Agent& agent : agents_) {
    if (!agent.closed) agent.output.insert(agent.output.end(), bytes.begin(), bytes.end());
  }
}

Bytes AgentGroup::TakeOutput(size_t agent) { return std::exchange(agents_[agent].output, {}); }
std::vector<std::string> AgentGroup::TakeWarnings() { return std::exchange(warnings_, {}); }

// The first failure is the cause of those that follow. But a host of this client that is lost is also what other clients hear of, and what they do then may
// come to the other agents of this client before the loss itself does.
void AgentGroup::Fail(size_t agent, bool here, const std::string& reason) {
  if (here && agents_[agent].reason.empty()) agents_[agent].reason = reason;
  if (failed_here_ || (failed_ && !here)) return;
  failed_ = true;
  failed_here_ = here;
  reason_ = reason;
}

}  // namespace weft::impi
