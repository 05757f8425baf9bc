#include "impi/run/agent_greeting.h"

#include <cerrno>
#include <chrono>
#include <sstream>

#include "base/hex.h"
#include "impi/run/authentication.h"
#include "pmi/launch/greeting.h"
#include "pmi/launch/outbox.h"

namespace weft::impi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kClient[] = "weft-impirun", kAgent[] = "weft-impi-agent";

}  // namespace

JobSecret SecretOfAgents(const JobSecret& secret) { return secret.Derive("weft-impi-agents", {}); }

bool GreetClient(int fd, const JobSecret& secret, size_t number, bool* closed) {
  *closed = true;
  const auto challenge = pmi::ReadLine(fd, Clock::now() + pmi::kGreetingLimit);
  if (!challenge) return false;
  std::istringstream words(*challenge);
  std::string name, nonce;
  words >> name >> nonce;
  *closed = false;
  if (name != kClient || nonce.size() != 2 * sizeof(Nonce)) return false;
  const std::string node = std::to_string(number), own_nonce = HexOf(NewNonce());
  const pmi::Said said(node, nonce, own_nonce);
  if (!pmi::SendText(fd, std::string(kAgent) + " " + node + " " + own_nonce + " " + HexOf(secret.Prove(kAgent, said.bytes())) + "\n")) return false;
  const auto reply = pmi::ReadLine(fd, Clock::now() + pmi::kGreetingLimit);
  *closed = !reply;
  const std::string start = std::string(kClient) + " ";
  return reply && reply->starts_with(start) && pmi::Proves(reply->substr(start.size()), secret, kClient, said);
}

AgentGreeting::AgentGreeting(int fd, const JobSecret& secret, size_t agents) : fd_(fd), secret_(secret), agents_(agents), nonce_(HexOf(NewNonce())) {
  pmi::SendText(fd_, std::string(kClient) + " " + nonce_ + "\n");  // if the peer is gone, Read sees it
}

AgentGreeting::State AgentGreeting::Read() {
  char letter = 0;
  long count = 0;
  while ((count = pmi::ReadSome(fd_, &letter, 1)) == 1 && letter != '\n' && text_.size() < pmi::kLongestGreeting) text_ += letter;
  if (count == -EAGAIN) return State::kWaits;
  return count == 1 && letter == '\n' ? Admit() : State::kRefused;
}

AgentGreeting::State AgentGreeting::Admit() {
  std::istringstream words(text_);
  std::string name, node, nonce, proof;
  words >> name >> node >> nonce >> proof;
  const auto number = NumberOf(node);
  const pmi::Said said(node, nonce_, nonce);
  if (name != kAgent || !number || *number >= agents_ || !pmi::Proves(proof, secret_, kAgent, said)) return State::kRefused;
  if (!pmi::SendText(fd_, std::string(kClient) + " " + HexOf(secret_.Prove(kClient, said.bytes())) + "\n")) return State::kRefused;
  number_ = static_cast<size_t>(*number);
  return State::kIsAgent;
}

}  // namespace weft::impi
