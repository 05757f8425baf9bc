#include "impi/agent/agent.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace weft::impi {
namespace {

// Section 3.8: after FINI, a host sends nothing but answers to what it was sent.
bool IsAnswer(PacketType type) {
  return type == PacketType::kProtocolAck || type == PacketType::kSyncAck || type == PacketType::kCancelYes || type == PacketType::kCancelNo;
}

}  // namespace

Agent::Agent(const Job& job, Setup setup, Time now)
    : job_(job), setup_(setup), store_(Packet::kSize + job.limits().data_length, kKept), of_host_(job.hosts().size(), kNobody) {
  WEFT_CHECK(setup_.host.value >= 0 && static_cast<size_t>(setup_.host.value) < job.hosts().size());
  const Job::Host& own = job.host(setup_.host);
  processes_ = own.processes;
  for (int32_t i = 0; i < processes_; ++i) links_.emplace_back(WorldRank(own.first.value + i), Peer::kStandard, job.limits(), &store_, setup_.process_budget);
  for (size_t host = 0; host < job.hosts().size(); ++host) {
    if (job.hosts()[host].client == own.client) continue;
    of_host_[host] = static_cast<int32_t>(links_.size());
    const bool is_lam = (setup_.lam_clients >> job.hosts()[host].client.value & 1) != 0;
    links_.emplace_back(HostRank(static_cast<int32_t>(host)), is_lam ? Peer::kLam : Peer::kStandard, job.limits(), &store_, setup_.host_budget);
  }
  if (processes_ == 0) SendFini(now);
  CheckEnd();
}

// --- connections ---

int32_t Agent::NumberOf(Port port) const {
  if (const auto* host = std::get_if<HostRank>(&port)) {
    WEFT_CHECK(host->value >= 0 && static_cast<size_t>(host->value) < of_host_.size() && of_host_[static_cast<size_t>(host->value)] != kNobody);
    return of_host_[static_cast<size_t>(host->value)];
  }
  const int32_t process = std::get<WorldRank>(port).value - job_.host(setup_.host).first.value;
  WEFT_CHECK(process >= 0 && process < processes_);
  return process;
}

Agent::Link& Agent::At(Port port) { return links_[static_cast<size_t>(NumberOf(port))]; }

std::string Agent::NameOf(Port port) const {
  if (const auto* host = std::get_if<HostRank>(&port)) return job_.NameOf(*host);
  return job_.NameOf(std::get<WorldRank>(port));
}

void Agent::OnBytes(Port port, ByteSpan bytes, Time now) {
  Link& link = At(port);
  if (link.silent_since) link.silent_since = now;
  while (state_ == State::kRunning && !link.closed) {
    auto taken = link.inlet.Take(bytes);
    if (!taken.ok()) return Blame(port, "sent a packet that is wrong: " + taken.error());
    if (!*taken) return;
    CarriedPacket packet = std::move(**taken);
    if (const auto* host = std::get_if<HostRank>(&port)) {
      OnPacketOfHost(*host, std::move(packet));
    } else {
      OnPacketOfProcess(std::get<WorldRank>(port), std::move(packet), now);
    }
  }
}

void Agent::OnClosed(Port port) {
  Link& link = At(port);
  if (state_ != State::kRunning || link.closed) return;
  link.closed = true;
  if (std::holds_alternative<WorldRank>(port)) {
    if (!link.fini_came) Blame(port, "ended without MPI_Finalize");
    return;
  }
  if (link.fini_came && link.fini_written) return;
  Blame(port, link.fini_came ? "closed its connection before it had this host's FINI" : "left before it sent FINI; its own messages may say why");
}

bool Agent::MayRead(Port port) const {
  const Link& link = At(port);
  return state_ == State::kRunning && !link.closed && link.account < link.budget;
}

size_t Agent::account(Port port) const { return At(port).account; }
bool Agent::HasEnded(WorldRank process) const { return At(process).fini_came; }
bool Agent::IsOver(HostRank host) const { return At(host).fini_came && At(host).fini_written; }

// --- the way of packets ---

void Agent::OnPacketOfHost(HostRank host, CarriedPacket carried) {
  Link& link = At(host);
  Packet& packet = carried.packet;
  if (packet.type == PacketType::kFini) {
    if (link.fini_came) return Blame(host, "sent FINI a second time");
    link.fini_came = true;
    link.silent_since.reset();
    return CheckEnd();
  }
  const std::string type = impi::NameOf(packet.type);
  if (link.fini_came && !IsAnswer(packet.type)) return Blame(host, "sent " + type + " after FINI; only acknowledgements may follow");
  const std::optional<WorldRank> source = job_.Find(packet.source), destination = job_.Find(packet.destination);
  if (!source || job_.process(*source).host != host) return Blame(host, "sent " + type + " from " + TextOf(packet.source) + ", which is no process of it");
  if (!destination || !IsHere(*destination)) {
    return Blame(host, "sent " + type + " to " + TextOf(packet.destination) + ", which is no process of " + job_.NameOf(setup_.host));
  }
  Pair& pair = PairOf(*source, *destination);
  if (Counts(packet.type)) ++pair.unacknowledged;
  if (At(*destination).fini_came) return Discard(*source, *destination);
  if (packet.has_data() && ++pair.waiting_data > job_.high_water()) {
    return Blame(host, "sent more than " + std::to_string(job_.high_water()) + " packets from rank " + std::to_string(source->value) + " to rank " +
                           std::to_string(destination->value) + " without an acknowledgement; the hosts agreed on that many (IMPI_H_HIWATER)");
  }
  Add(*destination, std::move(carried), NumberOf(host));
}

void Agent::OnPacketOfProcess(WorldRank process, CarriedPacket carried, Time now) {
  Link& link = At(process);
  Packet& packet = carried.packet;
  const std::string type = impi::NameOf(packet.type);
  if (link.fini_came) return Blame(process, "sent " + type + " after FINI");
  if (packet.type == PacketType::kFini) return OnFiniOfProcess(process, now);
  if (job_.Find(packet.source) != process) return Blame(process, "sent " + type + " in the name of " + TextOf(packet.source));
  const std::optional<WorldRank> destination = job_.Find(packet.destination);
  if (!destination) return Blame(process, "sent " + type + " to " + TextOf(packet.destination) + ", which is no process of this job");
  const HostRank host = job_.process(*destination).host;
  if (of_host_[static_cast<size_t>(host.value)] == kNobody) {
    return Blame(process, "sent " + type + " to rank " + std::to_string(destination->value) + " of its own client through the agent");
  }
  if (packet.type == PacketType::kProtocolAck) {
    Pair& pair = PairOf(*destination, process);
    if (pair.unacknowledged < job_.ack_mark()) {
      return Blame(process, "acknowledged " + std::to_string(job_.ack_mark()) + " packets of rank " + std::to_string(destination->value) +
                                ", and has " + std::to_string(pair.unacknowledged));
    }
    pair.unacknowledged -= job_.ack_mark();
  }
  packet.source = job_.process(process).name;
  packet.destination = job_.process(*destination).name;
  Add(host, std::move(carried), NumberOf(process));
}

Agent::Pair& Agent::PairOf(WorldRank source, WorldRank destination) {
  return pairs_[static_cast<uint64_t>(source.value) * static_cast<uint64_t>(processes_) + static_cast<uint64_t>(NumberOf(destination))];
}

void Agent::Add(Port to, CarriedPacket packet, int32_t payer) {
  Link& link = At(to);
  if (link.outlet.empty()) ready_.push_back(to);
  if (payer != kNobody) links_[static_cast<size_t>(payer)].account += packet.size();
  packet.WriteHeader(link.peer, ++link.packets);
  link.outlet.Add({std::move(packet), payer});
}

size_t Agent::Gather(Port port, std::span<ByteSpan> into) {
  Link& link = At(port);
  return state_ == State::kFailed || link.closed ? 0 : link.outlet.Gather(into);
}

void Agent::Wrote(Port port, size_t bytes, Time now) {
  Link& link = At(port);
  if (state_ == State::kFailed || link.closed) return;
  if (link.silent_since && bytes != 0) link.silent_since = now;
  Settle(port, link.outlet.Wrote(bytes), true);
}

// These packets have left the agent.
void Agent::Settle(Port port, const std::vector<Outlet::Entry>& gone, bool written) {
  for (const Outlet::Entry& entry : gone) {
    const Packet& packet = entry.packet.packet;
    if (entry.payer != kNobody) {
      Link& payer = links_[static_cast<size_t>(entry.payer)];
      const bool full = payer.account >= payer.budget;
      payer.account -= entry.packet.size();
      if (full && payer.account < payer.budget) readable_.push_back(payer.port);
    }
    if (std::holds_alternative<WorldRank>(port)) {
      if (packet.has_data()) --PairOf(*job_.Find(packet.source), std::get<WorldRank>(port)).waiting_data;
    } else if (packet.type == PacketType::kFini) {
      At(port).fini_written = written;
    } else if (entry.payer == kNobody) {
      --PairOf(*job_.Find(packet.destination), *job_.Find(packet.source)).waiting_acks;
    }
  }
  CheckEnd();
}

std::vector<Agent::Port> Agent::TakeReady() { return std::exchange(ready_, {}); }
std::vector<Agent::Port> Agent::TakeReadable() { return std::exchange(readable_, {}); }

// --- ends ---

void Agent::OnFiniOfProcess(WorldRank process, Time now) {
  Link& link = At(process);
  link.fini_came = true;
  ++ended_;
  Settle(process, link.outlet.DropAll(), false);
  const auto number = static_cast<uint64_t>(NumberOf(process)), processes = static_cast<uint64_t>(processes_);
  for (const auto& [key, pair] : pairs_) {
    if (key % processes == number) Acknowledge(WorldRank(static_cast<int32_t>(key / processes)), process);
  }
  if (ended_ == processes_) SendFini(now);
}

// A packet for a process that has ended; it is counted already.
void Agent::Discard(WorldRank source, WorldRank destination) {
  Acknowledge(source, destination);
  const Pair& pair = PairOf(source, destination);
  if (pair.waiting_acks <= job_.high_water()) return;
  Blame(job_.process(source).host, "sends from rank " + std::to_string(source.value) + " to rank " + std::to_string(destination.value) +
                                       ", and does not wait for acknowledgements (IMPI_H_HIWATER)");
}

// What is due to `source` in the place of `destination`, which has ended.
void Agent::Acknowledge(WorldRank source, WorldRank destination) {
  Pair& pair = PairOf(source, destination);
  while (pair.unacknowledged >= job_.ack_mark()) {
    pair.unacknowledged -= job_.ack_mark();
    ++pair.waiting_acks;
    Add(job_.process(source).host,
        CarriedPacket({.type = PacketType::kProtocolAck, .source = job_.process(destination).name, .destination = job_.process(source).name}), kNobody);
  }
}

void Agent::SendFini(Time now) {
  for (size_t at = static_cast<size_t>(processes_); at < links_.size(); ++at) {
    if (!links_[at].fini_came) links_[at].silent_since = now;
    Add(links_[at].port, CarriedPacket(FiniFor(Peer::kLam)), kNobody);  // table 3.1: only the type counts, so all may get what LAM looks for
  }
}

void Agent::CheckEnd() {
  if (state_ != State::kRunning || ended_ < processes_) return;
  const bool over = std::all_of(links_.begin() + processes_, links_.end(), [](const Link& link) { return link.fini_came && link.fini_written; });
  if (over) state_ = State::kEnded;
}

std::optional<Agent::Time> Agent::deadline() const {
  if (state_ != State::kRunning) return std::nullopt;
  std::optional<Time> first;
  for (const Link& link : links_) {
    if (link.silent_since && (!first || *link.silent_since + setup_.fini_patience < *first)) first = *link.silent_since + setup_.fini_patience;
  }
  return first;
}

void Agent::OnTime(Time now) {
  if (state_ != State::kRunning) return;
  for (const Link& link : links_) {
    if (!link.silent_since || *link.silent_since + setup_.fini_patience > now) continue;
    return Blame(link.port, "did not send FINI, and nothing else, within " + std::to_string(setup_.fini_patience.count()) +
                                " seconds after all processes of " + job_.NameOf(setup_.host) + " had ended; do its processes call MPI_Finalize?");
  }
}

void Agent::Blame(Port port, const std::string& what) {
  if (state_ != State::kRunning) return;
  state_ = State::kFailed;
  reason_ = NameOf(port) + " " + what;
  culprit_ = port;
  ready_.clear();
  readable_.clear();
  for (Link& link : links_) link.outlet.DropAll();
}

}  // namespace weft::impi
