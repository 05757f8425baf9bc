#include "mpi_hybrid/p2p/impi/impi_transport.h"

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "mpi_hybrid/p2p/impi/own_agent.h"

namespace weft::mpi {
namespace {

constexpr size_t kRead = 256 * 1024;     // bytes, of one read
constexpr size_t kGathered = 64 * 1024;  // bytes, of packets that are written together
constexpr size_t kCopied = 8 * 1024;     // bytes, of a packet's data; longer ones are written from where they are
constexpr int kReadsPerTurn = 16;

std::unique_ptr<PacketStream> StreamOf(const ImpiWorld& world, ImpiTransport::Setup& setup) {
  if (setup.hosts.empty()) return std::make_unique<AgentSocket>(std::move(setup.agent));
  return std::make_unique<OwnAgent>(world, std::move(setup.agent), std::move(setup.hosts));
}

impi::ProcessName NameOf(const ImpiWorld& world, impi::WorldRank rank) {
  const impi::ProcessName& name = world.job().process(rank).name;
  return {.host = impi::Canonical(name.host), .number = name.number};
}

}  // namespace

ImpiTransport::ImpiTransport(const ImpiWorld& world, Engine& engine, EventLoop& loop, Setup setup)
    : world_(world),
      engine_(engine),
      loop_(loop),
      flow_{.ack_mark = world.job().ack_mark(), .high_water = world.job().high_water(), .store = setup.store},
      agent_(StreamOf(world, setup)),
      endpoint_(NameOf(world, world.self()), world.job().limits()),
      in_(kRead) {
  engine_.AdmitForeign(world.job().limits().tag);
  engine_.set_on_link([this](Link& link) { OnLink(link); });
}

Error ImpiTransport::Start() {
  agent_->Start(loop_, *this);
  return {};
}

void ImpiTransport::OnLink(Link& link) {
  if (!world_.IsForeign(link.peer())) return;
  if (lost_) return engine_.OnGone(link.peer(), /*left=*/false);
  const impi::Peer kind = world_.IsLam(world_.ClientOf(link.peer())) ? impi::Peer::kLam : impi::Peer::kStandard;
  const impi::PeerId id = endpoint_.AddPeer(NameOf(world_, world_.RankOf(link.peer())), kind, flow_);
  const size_t at = static_cast<size_t>(link.peer());
  if (at >= peers_.size()) peers_.resize(at + 1);
  peers_[at] = std::make_unique<Peer>(link, endpoint_, id, contexts_);
  by_id_.push_back(peers_[at].get());
  link.OpenForeign(engine_.limits().window);
}

void ImpiTransport::AddContext(ContextId context, uint64_t on_wire, const Ref<Group>& remote) {
  contexts_.Add(context, on_wire, remote);
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    peer->link.OnNewContext();
    GiveTurn(*peer);
  }
  (void)Write();
}

// --- in ---

bool ImpiTransport::Poll() {
  const bool moved = Read();
  return Write() || moved;
}

void ImpiTransport::OnReady(uint32_t /*events*/) { (void)Poll(); }

void ImpiTransport::OnTime(EventLoop::Clock::time_point now) {
  agent_->OnTime(now);
  (void)Poll();
}

bool ImpiTransport::Read() {
  bool moved = false;
  for (int turn = 0; turn < kReadsPerTurn && !lost_; ++turn) {
    const size_t room = in_.size() - came_;
    const ssize_t got = agent_->Receive({in_.data() + came_, room});
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return moved;
    moved = true;
    if (got <= 0) {
      const std::string how = got < 0 ? std::string("broke: ") + std::strerror(errno) : "ended";
      if (fini_sent_)
        End();
      else
        Lose("the connection to the agent of this host " + how + "; impirun says why");
      return true;
    }
    if (fini_sent_) continue;  // the agent acknowledges it
    came_ += static_cast<size_t>(got);
    if (!TakePackets()) return true;
    if (static_cast<size_t>(got) < room) return true;
  }
  return moved;
}

// False: the connection is lost.
bool ImpiTransport::TakePackets() {
  size_t at = 0, wanted = impi::Packet::kSize;
  while (came_ - at >= impi::Packet::kSize) {
    const std::span<const uint8_t> rest(in_.data() + at, came_ - at);
    const auto header = rest.first<impi::Packet::kSize>();
    const auto packet = impi::Packet::Parse(header, world_.job().limits());
    if (!packet.ok()) {
      Lose("the agent of this host passed a wrong packet on: " + packet.error());
      return false;
    }
    wanted = impi::Packet::kSize + packet->data_length;
    if (rest.size() < wanted) break;
    Peer* const peer = SenderOf(*packet);
    if (peer == nullptr) {
      Lose("the agent of this host passed a packet of " + impi::TextOf(packet->source) + " on, which is no process of another client");
      return false;
    }
    if (const auto wrong = peer->link.OnPacket(header, rest.subspan(impi::Packet::kSize, packet->data_length))) {
      Lose(world_.job().NameOf(world_.RankOf(peer->engine_link.peer())) + " sent a wrong packet: " + wrong->text);
      return false;
    }
    GiveTurn(*peer);
    at += wanted;
    wanted = impi::Packet::kSize;
  }
  came_ -= at;
  if (at != 0 && came_ != 0) std::memmove(in_.data(), in_.data() + at, came_);
  if (wanted > in_.size()) in_.resize(wanted);
  return true;
}

ImpiTransport::Peer* ImpiTransport::SenderOf(const impi::Packet& packet) {
  if (const auto known = endpoint_.FindPeer(packet.source)) return by_id_[known->value];
  const auto rank = world_.job().Find(packet.source);
  if (!rank || !world_.IsForeign(world_.ProcessOf(*rank))) return nullptr;
  return PeerAt(engine_.LinkTo(world_.ProcessOf(*rank)).peer());
}

// --- out ---

bool ImpiTransport::Flush(Link& link) {
  Peer* const peer = PeerAt(link.peer());
  if (lost_ || peer == nullptr) return false;
  peer->link.Collect();
  GiveTurn(*peer);
  return !full_ && Write();
}

size_t ImpiTransport::WriteAtOnce(Link&, std::span<const iovec>, size_t, uint32_t) {
  WEFT_CHECK(false);  // a foreign link is never idle
  return 0;
}

void ImpiTransport::GiveTurn(Peer& peer) {
  if (peer.has_turn || !peer.link.has_output()) return;
  peer.has_turn = true;
  turns_.push_back(&peer);
}

void ImpiTransport::Gather() {
  gathered_.clear();
  written_ = 0;
  while (!fini_sent_ && !turns_.empty() && !long_ && gathered_.size() < kGathered) {
    Peer& peer = *turns_.front();
    turns_.pop_front();
    peer.has_turn = false;
    const auto next = peer.link.Next();
    if (!next) continue;
    gathered_.insert(gathered_.end(), next->packet.header.begin(), next->packet.header.end());
    if (next->data.size() > kCopied) {
      long_ = Long{&peer, *next};
      long_written_ = 0;
      return;
    }
    gathered_.insert(gathered_.end(), next->data.begin(), next->data.end());
    peer.link.Sent(next->packet);
    GiveTurn(peer);
  }
}

bool ImpiTransport::Write() {
  bool moved = false;
  while (!lost_) {
    if (written_ == gathered_.size() && !long_) {
      Gather();
      if (gathered_.empty()) SendFiniIfOver();
      if (gathered_.empty()) break;
    }
    iovec pieces[2] = {{gathered_.data() + written_, gathered_.size() - written_}, {}};
    if (long_) {
      const auto left = long_->packet.data.subspan(long_written_);
      pieces[1] = {const_cast<uint8_t*>(left.data()), left.size()};
    }
    const ssize_t wrote = agent_->Send(std::span(pieces).first(long_ ? 2 : 1));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!std::exchange(full_, true)) agent_->AwaitRoom(true);
      return moved;
    }
    if (wrote < 0) {
      Lose(std::string("the connection to the agent of this host broke: ") + std::strerror(errno) + "; impirun says why");
      return true;
    }
    moved = true;
    const size_t of_gathered = std::min(static_cast<size_t>(wrote), gathered_.size() - written_);
    written_ += of_gathered;
    if (!long_) continue;
    long_written_ += static_cast<size_t>(wrote) - of_gathered;
    if (long_written_ < long_->packet.data.size()) continue;
    const Long done = *std::exchange(long_, std::nullopt);
    done.peer->link.Sent(done.packet.packet);
    GiveTurn(*done.peer);
  }
  if (std::exchange(full_, false) && !lost_) agent_->AwaitRoom(false);
  return moved;
}

// --- the end ---

void ImpiTransport::EndOutput(Link& link) {
  if (Peer* const peer = PeerAt(link.peer())) peer->ended = true;
}

// All processes of the job are in MPI_Finalize, behind a barrier.
void ImpiTransport::SendFiniIfOver() {
  if (!stopping_ || fini_sent_) return;
  for (const Peer* peer : by_id_) {
    if (!peer->ended || !peer->link.leaving() || endpoint_.Unanswered(peer->id) != 0) return;
  }
  endpoint_.Finish();
  fini_sent_ = true;
  gathered_.resize(impi::Packet::kSize);
  written_ = 0;
  impi::Packet{.type = impi::PacketType::kFini}.Serialize(std::span<uint8_t, impi::Packet::kSize>(gathered_.data(), impi::Packet::kSize));
}

void ImpiTransport::End() {
  lost_ = true;
  agent_->Close();
  turns_.clear();
  long_.reset();
  gathered_.clear();
  written_ = 0;
}

void ImpiTransport::Lose(const std::string& why) {
  LogWarning("the other clients of this IMPI job are lost: " + why);
  End();
  for (const Peer* peer : by_id_) (void)endpoint_.Lose(peer->id);
  for (const ProcessId process : world_.processes()) {
    if (world_.IsForeign(process)) engine_.OnGone(process, /*left=*/false);
  }
}

}  // namespace weft::mpi
