#include "impi/entry/reception.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "impi/entry/hello.h"
#include "impi/entry/welcome.h"

namespace weft::impi {

Reception::Reception(std::vector<int32_t> ranks, uid_t user) : came_(ranks.size()), user_(user) {
  for (size_t place = 0; place < ranks.size(); ++place) WEFT_CHECK(place_of_.emplace(ranks[place], place).second);
}

void Reception::OnAccepted(Connection connection, uid_t user, Time now) {
  if (user == user_) {
    waiting_.emplace(connection, Stranger{now + kPatience, {}});
    return;
  }
  refused_.push_back({connection, "a process of user " + std::to_string(user) + " connected to the agent, which serves user " + std::to_string(user_) + " only", {}});
}

size_t Reception::Wants(Connection connection) const {
  const auto found = waiting_.find(connection);
  return found == waiting_.end() ? 0 : Hello::kSize - found->second.said.size();
}

void Reception::OnBytes(Connection connection, ByteSpan bytes) {
  WEFT_CHECK(bytes.size() <= Wants(connection));
  const auto stranger = waiting_.find(connection);
  std::vector<uint8_t>& said = stranger->second.said;
  said.insert(said.end(), bytes.begin(), bytes.end());
  if (said.size() < Hello::kSize) return;
  const auto hello = Hello::Parse(said);
  if (!hello.ok()) {
    Refuse(stranger, hello.error());
    return;
  }
  const std::string says = "says that it is rank " + std::to_string(hello->rank);
  const auto found = place_of_.find(hello->rank);
  if (found == place_of_.end()) {
    Refuse(stranger, says + ", which is not on this host; was WEFT_IMPI_AGENT changed?");
    return;
  }
  if (came_[found->second]) {
    Refuse(stranger, says + ", which is connected already; a process that was spawned or started by a rank is in no IMPI job");
    return;
  }
  came_[found->second] = true;
  welcomed_.push_back({connection, static_cast<int32_t>(found->second), hello->takes_connections});
  waiting_.erase(stranger);
}

void Reception::OnClosed(Connection connection) {
  const auto stranger = waiting_.find(connection);
  if (stranger != waiting_.end()) Refuse(stranger, "left before it said its rank");
}

std::optional<Reception::Time> Reception::deadline() const {
  std::optional<Time> first;
  for (const auto& [connection, stranger] : waiting_) {
    if (!first || stranger.speaks_by < *first) first = stranger.speaks_by;
  }
  return first;
}

void Reception::OnTime(Time now) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    at = at->second.speaks_by > now ? std::next(at) : Refuse(at, "did not say its rank within " + std::to_string(kPatience.count()) + " seconds");
  }
}

Reception::Waiting::iterator Reception::Refuse(Waiting::iterator stranger, const std::string& what) {
  refused_.push_back({stranger->first, "a process that connected to the agent " + what, SerializeDenial("it " + what)});
  return waiting_.erase(stranger);
}

std::vector<Reception::Guest> Reception::TakeWelcomed() { return std::exchange(welcomed_, {}); }
std::vector<Reception::Refusal> Reception::TakeRefused() { return std::exchange(refused_, {}); }

}  // namespace weft::impi
