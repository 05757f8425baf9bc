#include "impi/server/rendezvous.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/byte_reader.h"
#include "base/check.h"

namespace weft::impi {
namespace {

constexpr size_t kLongestAuth = 256;  // bytes: masks of methods, of which the first has 32

std::string MaskText(uint32_t mask) {
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), "0x%x", mask);
  return text.data();
}

}  // namespace

Rendezvous::Rendezvous(Setup setup, Owner& owner) : setup_(std::move(setup)), owner_(owner), clients_(static_cast<size_t>(setup_.clients)) {
  WEFT_CHECK(setup_.clients >= 1 && setup_.clients <= kMostClients);
  WEFT_CHECK(!setup_.methods.empty());
}

// --- connections ---

void Rendezvous::OnConnected(Connection connection, const std::string& address, Time now) {
  if (state_ == State::kEnded || state_ == State::kFailed) return owner_.Close(connection);
  if (strangers_ >= kMostStrangers) {
    Warn(address + " is turned away: " + std::to_string(strangers_) + " connections have not joined the job yet");
    return owner_.Close(connection);
  }
  ++strangers_;
  peers_.emplace(connection, Peer{.address = address, .joins_by = now + kJoinPatience, .reader = CommandReader(kLongestAuth)});
}

void Rendezvous::OnBytes(Connection connection, ByteSpan bytes, Time now) {
  const auto found = peers_.find(connection);
  if (found == peers_.end()) return;
  found->second.reader.Append(bytes);
  Read(connection, found->second, now);
}

void Rendezvous::OnClosed(Connection connection) {
  const auto found = peers_.find(connection);
  if (found == peers_.end()) return;
  const std::optional<int> rank = found->second.rank;
  const std::string address = found->second.address;
  peers_.erase(found);
  if (!rank) {
    --strangers_;
    return Warn(address + " left before it joined the job");
  }
  Fail(NameOf(*rank) + " left before it said that its processes have ended (FINI)");
}

std::optional<Rendezvous::Time> Rendezvous::deadline() const {
  std::optional<Time> first = exchanged_by_;
  for (const auto& [connection, peer] : peers_) {
    if (!peer.rank && (!first || peer.joins_by < *first)) first = peer.joins_by;
  }
  return first;
}

void Rendezvous::OnTime(Time now) {
  std::vector<Connection> late;
  for (const auto& [connection, peer] : peers_) {
    if (!peer.rank && peer.joins_by <= now) late.push_back(connection);
  }
  for (const Connection connection : late) {
    TurnAway(connection, "did not join the job within " + std::to_string(kJoinPatience.count()) + " seconds");
  }
  if (!exchanged_by_ || *exchanged_by_ > now) return;
  std::string silent;
  for (int rank = 0; rank < setup_.clients; ++rank) {
    if (clients_[static_cast<size_t>(rank)]->done) continue;
    silent += (silent.empty() ? "" : ", ") + NameOf(rank);
  }
  Fail("after " + std::to_string(kExchangePatience.count()) + " seconds these have not said all that they have to say at the start: " + silent);
}

// --- what they say ---

// A connection may end in each step, and the whole job with it.
void Rendezvous::Read(Connection connection, Peer& peer, Time now) {
  for (;;) {
    if (peer.awaits == Awaits::kKey) {
      const std::optional<Bytes> words = peer.reader.NextWords(kKeySize);
      if (!words || !CheckKey(connection, peer, ParseKey(*words))) return;
      continue;
    }
    const std::optional<Command> command = peer.reader.NextCommand();
    if (!command) break;
    switch (peer.awaits) {
      case Awaits::kAuth:
        if (!Authenticate(connection, peer, *command)) return;
        break;
      case Awaits::kKey:
        break;
      case Awaits::kRank:
        if (!Join(connection, peer, *command, now)) return;
        break;
      case Awaits::kCommands:
        if (!Obey(peer, *command)) return;
        break;
    }
  }
  const std::optional<int32_t> refused = peer.reader.refused_length();
  if (!refused) return;
  const std::string why = "sent a command with a payload of " + std::to_string(*refused) + " bytes";
  if (!peer.rank) return TurnAway(connection, why);
  Fail(NameOf(*peer.rank) + " " + why + "; at most " + std::to_string(kLongestPayload) + " are accepted");
}

bool Rendezvous::Authenticate(Connection connection, Peer& peer, const Command& command) {
  if (command.code != CommandCode::kAuth) {
    TurnAway(connection, "began with " + impi::NameOf(command.code) + " and not with AUTH");
    return false;
  }
  ByteReader reader(command.payload);
  if (reader.remaining() < sizeof(uint32_t)) {
    TurnAway(connection, "sent AUTH without methods");
    return false;
  }
  const uint32_t mask = reader.U32();  // masks behind it are of methods that this server does not have
  const auto chosen = std::find_if(setup_.methods.begin(), setup_.methods.end(), [&](AuthMethod method) { return (mask >> static_cast<int>(method) & 1) != 0; });
  if (chosen == setup_.methods.end()) {
    TurnAway(connection, "offers the authentication methods " + MaskText(mask) +
                             ", none of which this server accepts; set IMPI_AUTH_KEY to the same number, or IMPI_AUTH_NONE, at both");
    return false;
  }
  owner_.Send(connection, AuthChoice{.which = static_cast<int32_t>(*chosen), .length = 0}.Serialize());
  if (*chosen == AuthMethod::kNone) Warn(peer.address + " has authenticated with IMPI_AUTH_NONE");
  peer.awaits = *chosen == AuthMethod::kKey ? Awaits::kKey : Awaits::kRank;
  return true;
}

bool Rendezvous::CheckKey(Connection connection, Peer& peer, uint64_t key) {
  if (key != setup_.key) {
    TurnAway(connection, "sent a wrong key; IMPI_AUTH_KEY has to be the same number as at the server");
    return false;
  }
  peer.awaits = Awaits::kRank;
  return true;
}

bool Rendezvous::Join(Connection connection, Peer& peer, const Command& command, Time now) {
  if (command.code != CommandCode::kImpi) {
    TurnAway(connection, "sent " + impi::NameOf(command.code) + " before IMPI");
    return false;
  }
  if (command.payload.size() != sizeof(uint32_t)) {
    TurnAway(connection, "sent IMPI with " + std::to_string(command.payload.size()) + " bytes and not 4");
    return false;
  }
  const auto rank = static_cast<int32_t>(ByteReader(command.payload).U32());
  if (rank < 0 || rank >= setup_.clients) {
    TurnAway(connection, "wants to be client " + std::to_string(rank) + "; this job has the clients 0 to " + std::to_string(setup_.clients - 1));
    return false;
  }
  std::optional<Client>& client = clients_[static_cast<size_t>(rank)];
  if (client) {
    TurnAway(connection, "wants to be client " + std::to_string(rank) + ", which " + client->address + " is already");
    return false;
  }
  client = Client{.connection = connection, .address = peer.address};
  peer.rank = rank;
  peer.awaits = Awaits::kCommands;
  peer.reader.set_longest_payload(kLongestPayload);
  --strangers_;
  if (std::any_of(clients_.begin(), clients_.end(), [](const auto& one) { return !one; })) return true;
  state_ = State::kExchanging;
  exchanged_by_ = now + kExchangePatience;
  SendToAll(Command::OfNumber(CommandCode::kImpi, static_cast<uint32_t>(setup_.clients)));
  Distribute();
  return state_ != State::kFailed;
}

bool Rendezvous::Obey(Peer& peer, const Command& command) {
  const int rank = *peer.rank;
  Client& client = *clients_[static_cast<size_t>(rank)];
  switch (command.code) {
    case CommandCode::kColl:
      Collect(rank, command);
      return state_ != State::kFailed;
    case CommandCode::kDone:
      client.done = true;
      Distribute();
      return state_ != State::kFailed;
    case CommandCode::kFini:
      if (state_ != State::kRunning) {
        Fail(NameOf(rank) + " ended (FINI) before the job had started");
        return false;
      }
      Finish(client.connection, rank);
      return false;
    case CommandCode::kAuth:
    case CommandCode::kImpi:
      Fail(NameOf(rank) + " sent " + impi::NameOf(command.code) + " a second time");
      return false;
  }
  return true;  // of a later version
}

void Rendezvous::Collect(int rank, const Command& command) {
  Client& client = *clients_[static_cast<size_t>(rank)];
  std::optional<Collected> said = Collected::FromClient(command);
  if (!said) return Fail(NameOf(rank) + " sent COLL without a label");
  if (client.done) return Fail(NameOf(rank) + " sent " + impi::NameOf(said->label) + " after DONE");
  if (said->label <= client.last) {
    return Fail(NameOf(rank) + " sent " + impi::NameOf(said->label) + " after " + impi::NameOf(client.last) + "; labels ascend");
  }
  said_bytes_ += said->values.size();
  if (said_bytes_ > kMostSaid) {
    return Fail("the clients said more than " + std::to_string(kMostSaid) + " bytes about themselves; " + NameOf(rank) + " was the last one");
  }
  client.last = said->label;
  said_[said->label][rank] = std::move(said->values);
  Distribute();
}

void Rendezvous::Finish(Connection connection, int rank) {
  clients_[static_cast<size_t>(rank)]->ended = true;
  peers_.erase(connection);
  owner_.Close(connection);
  if (!Everybody(&Client::ended)) return;
  state_ = State::kEnded;
  while (!peers_.empty()) TurnAway(peers_.begin()->first, "came when the job had ended");
}

// Labels ascend, so a client that sent a higher one, or DONE, adds nothing to a label.
void Rendezvous::Distribute() {
  if (state_ != State::kExchanging) return;
  while (!said_.empty()) {
    const auto& [label, values] = *said_.begin();
    const bool complete = std::all_of(clients_.begin(), clients_.end(), [&, label = label](const auto& client) { return client->done || client->last >= label; });
    if (!complete) return;
    Collected all{.label = label, .clients = 0, .values = {}};
    for (const auto& [rank, bytes] : values) {
      all.clients |= uint32_t{1} << rank;
      all.values.insert(all.values.end(), bytes.begin(), bytes.end());
    }
    said_bytes_ -= all.values.size();
    said_.erase(said_.begin());
    SendToAll(all.ToClient());
  }
  if (!Everybody(&Client::done)) return;
  exchanged_by_.reset();
  state_ = State::kRunning;
  SendToAll({.code = CommandCode::kDone, .payload = {}});
}

void Rendezvous::SendToAll(const Command& command) {
  const Bytes bytes = command.Serialize();
  for (const auto& client : clients_) owner_.Send(client->connection, bytes);
}

bool Rendezvous::Everybody(bool Client::*flag) const {
  return std::all_of(clients_.begin(), clients_.end(), [&](const auto& client) { return client && (*client).*flag; });
}

// --- ends ---

void Rendezvous::TurnAway(Connection connection, const std::string& why) {
  const auto found = peers_.find(connection);
  WEFT_CHECK(found != peers_.end() && !found->second.rank);
  const std::string address = found->second.address;
  peers_.erase(found);
  --strangers_;
  owner_.Close(connection);
  Warn(address + " " + why);
}

void Rendezvous::Fail(std::string reason) {
  if (state_ == State::kFailed) return;
  state_ = State::kFailed;
  reason_ = std::move(reason);
  exchanged_by_.reset();
  said_.clear();
  strangers_ = 0;
  for (const auto& [connection, peer] : std::exchange(peers_, {})) owner_.Close(connection);
}

void Rendezvous::Warn(const std::string& text) {
  if (++warnings_ < kMostWarnings) owner_.Warn(text);
  if (warnings_ == kMostWarnings) owner_.Warn("further warnings are not shown");
}

std::string Rendezvous::NameOf(int rank) const {
  return "client " + std::to_string(rank) + " (" + clients_[static_cast<size_t>(rank)]->address + ")";
}

}  // namespace weft::impi
