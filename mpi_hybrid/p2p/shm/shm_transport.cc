#include "mpi_hybrid/p2p/shm/shm_transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/address_space_mark.h"
#include "base/job_secret.h"
#include "base/log.h"

namespace weft::mpi::shm {
namespace {

constexpr size_t kStaging = 64 * 1024;
constexpr uint32_t kLoopEvery = 256;  // polls, for those who die while nobody sleeps
constexpr auto kLookEvery = std::chrono::milliseconds(500);

}  // namespace

ShmTransport::ShmTransport(NodeSegment& node, Engine& engine, EventLoop& loop, size_t in_place_from)
    : node_(node),
      engine_(engine),
      loop_(loop),
      in_place_from_(in_place_from),
      own_attention_(node.attention_of(node.place())),
      staging_(kStaging),
      cells_(node.OfPlace(node.place())) {
  const Nonce cookie = NewNonce();
  static_assert(sizeof(cookie) >= sizeof(cookie_));
  std::copy_n(cookie.begin(), sizeof(cookie_), cookie_);
}

ShmTransport::~ShmTransport() { End(PlaceCard::kLost); }

Error ShmTransport::Start() {
  bell_ = {loop_, node_.bell_fd(), EPOLLIN, *this};
  look_at_ = Clock::now() + kLookEvery;
  PlaceCard& card = CardOf(node_.place());
  card.window = engine_.limits().window;
  card.cookie_address = reinterpret_cast<uintptr_t>(cookie_);
  std::copy_n(cookie_, sizeof(cookie_), card.cookie);
  card.mark = AddressSpaceMark();
  card.state.store(PlaceCard::kHere, std::memory_order_release);
  if (presence() != nullptr) presence()->Show(&card.stays);
  return {};
}

// --- connecting ---

void ShmTransport::Connect(Link& link) {
  const std::optional<int> place = node_.PlaceOf(link.peer());
  if (stopping_ || !place || PeerOf(link.peer()) != nullptr) return;
  if (ended_) return engine_.OnGone(link.peer(), /*left=*/false);
  Open(link, *place);
  if (PeerOf(link.peer()) == nullptr) return;
  PlaceCard& card = CardOf(*place);
  card.callers[node_.place() / 64].fetch_or(uint64_t{1} << (node_.place() % 64));
  Knock(*place);
  // It may have ended without having seen the bit (End): then this one looks at its state in the next poll.
  if (card.state.load() != PlaceCard::kHere) node_.attention_of(node_.place()).fetch_or(kKnock);
}

void ShmTransport::Open(Link& link, int place) {
  const ProcessId process = link.peer();
  const PlaceCard& card = CardOf(place);
  const ShmConnection::Memory memory = {.out = Ring(node_.place(), place),
                                        .in = Ring(place, node_.place()),
                                        .cells = cells_,
                                        .its_area = node_.OfPlace(place),
                                        .its_attention = node_.attention_of(place),
                                        .its_stay = card.stays};
  auto peer = std::make_unique<Peer>(*this, link, place, memory);
  const uint32_t state = card.state.load(std::memory_order_acquire);
  if (state != PlaceCard::kHere || !peer->process.Open(loop_, node_, place)) {
    return engine_.OnGone(process, /*left=*/state == PlaceCard::kLeft);
  }
  PlaceCard copy;
  std::memcpy(copy.cookie, card.cookie, sizeof(copy.cookie));
  if (in_place_from_ != kNeverInPlace && peer->process.TryToRead(card.mark, card.cookie_address, copy.cookie)) peer->connection.set_reads_memory();
  const size_t at = static_cast<size_t>(process);
  if (at >= peers_.size()) peers_.resize(at + 1);
  peers_[at] = std::move(peer);
  open_.push_back(peers_[at].get());
  link.Open(card.window);
  link.set_lane(&peers_[at]->connection);
  peers_[at]->connection.Write();
}

void ShmTransport::Knock(int place) {
  node_.attention_of(place).fetch_or(kKnock);
  node_.RingAfterFence(place);
}

// Takes the bit first and looks then: who comes after that sets it again. The two of Knock are in the other order.
void ShmTransport::AnswerKnocks() {
  node_.attention_of(node_.place()).fetch_and(~kKnock);
  PlaceCard& card = CardOf(node_.place());
  for (int place = 0; place < node_.places(); place += 64) {
    uint64_t callers = card.callers[place / 64].exchange(0);
    for (int i = place; callers != 0; ++i, callers >>= 1) {
      if ((callers & 1) == 0 || i >= node_.places() || i == node_.place()) continue;
      const ProcessId process = node_.ProcessAt(i);
      if (!node_.PlaceOf(process) || PeerOf(process) != nullptr) continue;
      Link& link = engine_.LinkTo(process);
      if (!link.is_gone()) Open(link, i);
    }
  }
  for (size_t i = 0; i < open_.size(); ++i) {
    ShmConnection& connection = open_[i]->connection;
    const bool ended = CardOf(connection.place()).state.load(std::memory_order_acquire) != PlaceCard::kHere;
    if (ended || connection.peer_reads_nothing()) connection.OnPeerGone(/*is_dead=*/false);
  }
  // A rank that lives and is lost is so for windows and collectives, too, of ranks that have no connection with it.
  if (!node_.any_gave_up()) [[likely]] return;
  for (int place = 0; place < node_.places(); ++place) {
    if (CardOf(place).state.load(std::memory_order_acquire) != PlaceCard::kOverwritten || place == node_.place()) continue;
    const ProcessId process = node_.ProcessAt(place);
    if (node_.PlaceOf(process) && PeerOf(process) == nullptr) engine_.OnGone(process, /*left=*/false);
  }
}

// --- connections that are open ---

bool ShmTransport::Flush(Link& link) {
  if (Peer* peer = PeerOf(link.peer())) return peer->connection.Write();
  Connect(link);
  return false;
}

size_t ShmTransport::WriteAtOnce(Link& link, std::span<const iovec> pieces, size_t total, uint32_t /*flow*/) {
  return PeerOf(link.peer())->connection.WriteAtOnce(pieces, total);
}

bool ShmTransport::Poll() {
  bool moved = false;
  if (HasKnock()) [[unlikely]] {
    AnswerKnocks();
    moved = true;
  }
  if (++polls_ % kLoopEvery == 0 && !open_.empty()) moved |= loop_.Dispatch(0);
  for (size_t i = 0; i < open_.size(); ++i) {
    Peer& peer = *open_[i];
    if (peer.process.is_dead()) peer.connection.OnPeerGone(/*is_dead=*/true);
    moved |= peer.connection.Read();
    if (peer.connection.is_blocked() || peer.connection.has_pending_end()) moved |= peer.connection.Write();
  }
  return DropLost() | moved;
}

bool ShmTransport::DropLost() {
  const bool any = !lost_.empty();
  while (!lost_.empty()) {
    const ProcessId process = lost_.back();
    lost_.pop_back();
    Peer* const peer = PeerOf(process);
    if (peer == nullptr) continue;
    peer->connection.SayGone();
    const int place = peer->connection.place();
    std::erase(open_, peer);
    peers_[static_cast<size_t>(process)].reset();
    Knock(place);
    engine_.OnGone(process, /*left=*/false);
  }
  return any;
}

ssize_t ShmTransport::ReadPeer(ShmConnection& connection, std::span<const iovec> to, uint64_t from, size_t bytes) {
  return PeerWith(connection).process.Read(to, from, bytes);
}

bool ShmTransport::StaysForLongData() {
  if (presence() == nullptr || !presence()->is_sure()) return false;
  presence()->set_needed();
  return true;
}

void ShmTransport::OnLeaving() {
  for (Peer* peer : open_) peer->connection.Leave();
}

// --- sleeping ---

bool ShmTransport::Arm() {
  asleep_ = true;
  node_.WillSleep();
  if (HasKnock() || !lost_.empty()) return false;
  return std::all_of(open_.begin(), open_.end(), [](Peer* peer) {
    return !peer->process.is_dead() && peer->connection.Arm();
  });
}

void ShmTransport::OnAwake() {
  asleep_ = false;
  node_.IsAwake();
  for (Peer* peer : open_) peer->connection.OnAwake();
}

// What the bell says is looked at by who was asleep, and by each poll. Here it only must not stay readable: a ring that
// came late would end each sleep.
void ShmTransport::OnReady(uint32_t) {
  if (!asleep_) node_.Silence();
}

std::optional<ShmTransport::Clock::time_point> ShmTransport::deadline() const {
  if (ended_) return std::nullopt;
  return look_at_;
}

void ShmTransport::OnTime(Clock::time_point now) {
  look_at_ = now + kLookEvery;
  for (size_t i = 0; i < open_.size(); ++i) {  // what they have sent may open others
    Peer& peer = *open_[i];
    if (!peer.process.has_descriptor() && peer.process.Look()) peer.connection.OnPeerGone(/*is_dead=*/true);
  }
  DropLost();
  if (const std::string overwritten = FindOverwritten(); !overwritten.empty()) [[unlikely]] {
    LogWarning(overwritten + "; this rank cannot reach the ranks of this host any more");
    GiveUp();
  }
}

std::string ShmTransport::Overwritten() const {
  for (const Peer* peer : open_) {
    if (!peer->connection.HasItsWords()) return "a counter of this rank in messages with " + peer->connection.link().Describe();
  }
  return {};
}

// The others find that on the card of this process.
void ShmTransport::GiveUp() {
  End(PlaceCard::kOverwritten);
  for (int place = 0; place < node_.places(); ++place) {
    const ProcessId process = node_.ProcessAt(place);
    if (place != node_.place() && node_.PlaceOf(process)) engine_.OnGone(process, /*left=*/false);
  }
}

// --- the end ---

void ShmTransport::EndOutput(Link& link) {
  if (Peer* peer = PeerOf(link.peer())) peer->connection.EndOutput();
}

void ShmTransport::Drop(const Link& link) {
  Peer* const peer = PeerOf(link.peer());
  if (peer == nullptr) return;
  peer->connection.SayGone();
  const int place = peer->connection.place();
  std::erase(open_, peer);
  peers_[static_cast<size_t>(link.peer())].reset();
  Knock(place);
}

// Tells the processes that have connected. A process that connects at the same time sets its bit in `callers` before it reads the state (Connect), so one
// of the two sees the other. A process whose words were overwritten tells all.
void ShmTransport::End(PlaceCard::State state) {
  std::vector<int> told;
  for (const Peer* peer : open_) told.push_back(peer->connection.place());
  open_.clear();
  peers_.clear();
  bell_.End();
  if (std::exchange(ended_, true)) return;
  if (presence() != nullptr) presence()->Show(nullptr);
  PlaceCard& card = CardOf(node_.place());
  card.state.store(state, std::memory_order_seq_cst);
  if (state == PlaceCard::kOverwritten) node_.GiveUp();
  for (int place = 0; place < node_.places(); ++place) {
    const bool calls = (card.callers[place / 64].load() >> (place % 64) & 1) != 0;
    if (calls || state == PlaceCard::kOverwritten) told.push_back(place);
  }
  for (const int place : told) {
    if (place != node_.place() && node_.PlaceOf(node_.ProcessAt(place))) Knock(place);
  }
}

}  // namespace weft::mpi::shm
