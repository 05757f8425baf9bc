#include "impi/agent/dance.h"

#include <algorithm>
#include <utility>

#include "base/byte_writer.h"
#include "base/check.h"

namespace weft::impi {

Dance::Dance(const Job& job, Setup setup, Time now) : job_(job), setup_(setup), connected_by_(now + setup.patience) {
  WEFT_CHECK(setup_.host.value >= 0 && static_cast<size_t>(setup_.host.value) < job_.hosts().size());
  Advance();
}

// --- to hosts of lower ranks ---

HostRank Dance::peer() const {
  WEFT_CHECK(step_ == Step::kConnect);
  return HostRank(next_);
}

std::vector<uint8_t> Dance::OnConnected(Connection connection) {
  if (step_ != Step::kConnect) return {};  // it failed meanwhile
  connections_.emplace(HostRank(next_++), connection);
  Advance();
  std::vector<uint8_t> greeting(kGreeting);
  ByteWriter(greeting).U32(static_cast<uint32_t>(setup_.host.value));
  return greeting;
}

void Dance::OnConnectFailed(const std::string& why) {
  if (step_ != Step::kConnect) return;
  Fail("cannot connect to " + job_.NameOf(peer()) + " at port " + std::to_string(job_.host(peer()).port) + ": " + why +
       "; its agent should listen there until all hosts are connected");
}

// --- from hosts of higher ranks ---

bool Dance::FitsAny(const HostId& address) const {
  if (setup_.rule == AddressRule::kAny) return true;
  for (int32_t rank = setup_.host.value + 1; static_cast<size_t>(rank) < job_.hosts().size(); ++rank) {
    if (IsAwaited(HostRank(rank)) && Canonical(job_.host(HostRank(rank)).address) == Canonical(address)) return true;
  }
  return false;
}

void Dance::OnAccepted(Connection connection, const HostId& address, Time now) {
  if (step_ != Step::kAccept) return Refuse(connection, address, step_ == Step::kConnect ? "came before this host accepts" : "came when this host accepts no more");
  if (!FitsAny(address)) return Refuse(connection, address, "is not the address of a host that is missing");
  if (strangers_.size() >= kMostStrangers) {
    return Refuse(connection, address, "is turned away: " + std::to_string(strangers_.size()) + " connections have not said which host they are");
  }
  strangers_.emplace(connection, Stranger{.address = address, .speaks_by = now + kGreetingPatience, .said = {}});
}

size_t Dance::Wants(Connection connection) const {
  const auto found = strangers_.find(connection);
  return found == strangers_.end() ? 0 : kGreeting - found->second.said.size();
}

void Dance::OnBytes(Connection connection, ByteSpan bytes) {
  WEFT_CHECK(bytes.size() <= Wants(connection));
  if (bytes.empty()) return;
  const auto found = strangers_.find(connection);
  std::vector<uint8_t>& said = found->second.said;
  said.insert(said.end(), bytes.begin(), bytes.end());
  if (said.size() < kGreeting) return;
  const auto rank = static_cast<int32_t>(ByteReader(said).U32());
  const HostId address = found->second.address;
  strangers_.erase(found);
  Welcome(connection, address, rank);
}

void Dance::Welcome(Connection connection, const HostId& address, int32_t rank) {
  const std::string wants = "wants to be host " + std::to_string(rank);
  if (rank < 0 || static_cast<size_t>(rank) >= job_.hosts().size()) {
    return Refuse(connection, address, wants + "; this job has the hosts 0 to " + std::to_string(job_.hosts().size() - 1));
  }
  const HostRank host(rank);
  if (connections_.contains(host)) return Refuse(connection, address, wants + ", which is connected already");
  if (!IsPartner(host)) return Refuse(connection, address, wants + ", which is of this client, and connects to others only");
  WEFT_CHECK(host > setup_.host);  // those of lower ranks are connected in kAccept
  if (setup_.rule == AddressRule::kAnnounced && Canonical(job_.host(host).address) != Canonical(address)) {
    return Refuse(connection, address, wants + ", which announced the address " + TextOf(job_.host(host).address) + "; its agent has to connect from there");
  }
  connections_.emplace(host, connection);
  Advance();
}

void Dance::OnClosed(Connection connection) {
  const auto stranger = strangers_.find(connection);
  if (stranger != strangers_.end()) {
    const HostId address = stranger->second.address;
    strangers_.erase(stranger);
    return Refuse(connection, address, "left before it said which host it is");
  }
  const auto connected = std::find_if(connections_.begin(), connections_.end(), [&](const auto& entry) { return entry.second == connection; });
  if (connected == connections_.end() || step_ == Step::kDone) return;
  Fail(job_.NameOf(connected->first) + " left before all hosts were connected");
}

// --- time ---

std::optional<Dance::Time> Dance::deadline() const {
  if (step_ == Step::kDone || step_ == Step::kFailed) return std::nullopt;
  Time first = connected_by_;
  for (const auto& [connection, stranger] : strangers_) first = std::min(first, stranger.speaks_by);
  return first;
}

void Dance::OnTime(Time now) {
  if (step_ == Step::kDone || step_ == Step::kFailed) return;
  for (auto at = strangers_.begin(); at != strangers_.end();) {
    if (at->second.speaks_by > now) {
      ++at;
      continue;
    }
    Refuse(at->first, at->second.address, "did not say which host it is within " + std::to_string(kGreetingPatience.count()) + " seconds");
    at = strangers_.erase(at);
  }
  if (connected_by_ > now) return;
  const std::string seconds = " within " + std::to_string(setup_.patience.count()) + " seconds; ";
  if (step_ == Step::kConnect) {
    return Fail(job_.NameOf(peer()) + " did not accept a connection at port " + std::to_string(job_.host(peer()).port) + seconds +
                "can its address be reached from " + TextOf(own().address) + "?");
  }
  std::optional<HostRank> missing;
  int others = 0;
  for (int32_t rank = setup_.host.value + 1; static_cast<size_t>(rank) < job_.hosts().size(); ++rank) {
    if (!IsAwaited(HostRank(rank))) continue;
    if (missing) ++others;
    if (!missing) missing = HostRank(rank);
  }
  WEFT_CHECK(missing);
  Fail(job_.NameOf(*missing) + (others == 0 ? " has" : " and " + std::to_string(others) + " more have") + " not connected to " + TextOf(own().address) +
       " at port " + std::to_string(own().port) + seconds + "can it be reached from there?");
}

// --- ends ---

// To the next step that is left.
void Dance::Advance() {
  while (next_ < setup_.host.value && !IsPartner(HostRank(next_))) ++next_;
  if (next_ < setup_.host.value) {
    step_ = Step::kConnect;
    return;
  }
  step_ = Step::kAccept;
  for (int32_t rank = setup_.host.value + 1; static_cast<size_t>(rank) < job_.hosts().size(); ++rank) {
    if (IsAwaited(HostRank(rank))) return;
  }
  step_ = Step::kDone;
  RefuseStrangers("had not said which host it is when all hosts were connected");
}

void Dance::Refuse(Connection connection, const HostId& address, const std::string& why) { refused_.push_back({connection, TextOf(address) + " " + why}); }

void Dance::RefuseStrangers(const std::string& why) {
  for (const auto& [connection, stranger] : std::exchange(strangers_, {})) Refuse(connection, stranger.address, why);
}

std::vector<Dance::Refusal> Dance::TakeRefused() { return std::exchange(refused_, {}); }

void Dance::Fail(std::string reason) {
  if (step_ == Step::kFailed) return;
  step_ = Step::kFailed;
  reason_ = std::move(reason);
  RefuseStrangers("had not said which host it is when the job ended");
}

}  // namespace weft::impi
