#include "mpi_hybrid/p2p/host/host_transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/address_space_mark.h"
#include "base/job_secret.h"
#include "base/log.h"

namespace weft::mpi::host {
namespace {

constexpr size_t kStaging = 64 * 1024;
constexpr uint32_t kLoopEvery = 256;  // polls, for those who die while nobody sleeps
constexpr auto kLookEvery = std::chrono::milliseconds(500);

}  // namespace

HostTransport::HostTransport(Segment& segment, Engine& engine, EventLoop& loop, size_t in_place_from)
    : segment_(segment),
      engine_(engine),
      loop_(loop),
      in_place_from_(in_place_from),
      own_attention_(segment.attention_of(segment.place())),
      staging_(kStaging),
      cells_(segment.OfPlace(segment.place())) {
  const Nonce cookie = NewNonce();
  static_assert(sizeof(cookie) >= sizeof(cookie_));
  std::copy_n(cookie.begin(), sizeof(cookie_), cookie_);
}

HostTransport::~HostTransport() { End(PlaceCard::kLost); }

Error HostTransport::Start() {
  // What rings it without a look at the segment is a window's with ranks of other jobs.
  bell_ = {loop_, segment_.bell_fd(), EPOLLIN, *this, EventLoop::Urgency::kPatient};
  loop_.set_nap(this);
  look_at_ = Clock::now() + kLookEvery;
  PlaceCard& card = CardOf(segment_.place());
  card.window = engine_.limits().window;
  card.cookie_address = reinterpret_cast<uintptr_t>(cookie_);
  std::copy_n(cookie_, sizeof(cookie_), card.cookie);
  card.mark = AddressSpaceMark();
  card.state.store(PlaceCard::kHere, std::memory_order_release);
  if (presence() != nullptr) presence()->Show(&card.stays);
  return {};
}

// --- connecting ---

void HostTransport::Connect(Link& link) {
  const std::optional<int> place = segment_.PlaceOf(link.peer());
  if (stopping_ || !place || PeerOf(link.peer()) != nullptr) return;
  if (ended_) return engine_.OnGone(link.peer(), /*left=*/false);
  Open(link, *place);
  if (PeerOf(link.peer()) == nullptr) return;
  PlaceCard& card = CardOf(*place);
  card.callers[segment_.place() / 64].fetch_or(uint64_t{1} << (segment_.place() % 64));
  Knock(*place);
  // It may have ended without having seen the bit (End): then this one looks at its state in the next poll.
  if (card.state.load() != PlaceCard::kHere) segment_.attention_of(segment_.place()).fetch_or(kKnock);
}

void HostTransport::Open(Link& link, int place) {
  const ProcessId process = link.peer();
  const PlaceCard& card = CardOf(place);
  const HostConnection::Memory memory = {.out = Ring(segment_.place(), place),
                                        .in = Ring(place, segment_.place()),
                                        .cells = cells_,
                                        .its_area = segment_.OfPlace(place),
                                        .its_attention = segment_.attention_of(place),
                                        .its_stay = card.stays};
  auto peer = std::make_unique<Peer>(*this, link, place, memory);
  const uint32_t state = card.state.load(std::memory_order_acquire);
  std::shared_ptr<Process> its = state == PlaceCard::kHere ? segment_.ProcessAt(place) : nullptr;
  if (its == nullptr) return engine_.OnGone(process, /*left=*/state == PlaceCard::kLeft);
  PlaceCard copy;
  std::memcpy(copy.cookie, card.cookie, sizeof(copy.cookie));
  if (in_place_from_ != kNeverInPlace) {
    peer->memory = ProcessMemory::Of({.pid = its->pid(), .mark = card.mark, .cookie_address = card.cookie_address, .cookie = copy.cookie},
                                     ProcessMemory::Access::kRead);
  }
  if (peer->memory != nullptr) peer->connection.set_reads_memory();
  peer->watch.Begin(loop_, std::move(its));
  const size_t at = static_cast<size_t>(process);
  if (at >= peers_.size()) peers_.resize(at + 1);
  peers_[at] = std::move(peer);
  open_.push_back(peers_[at].get());
  link.Open(card.window);
  link.set_lane(&peers_[at]->connection);
  peers_[at]->connection.Write();
}

void HostTransport::Knock(int place) {
  segment_.attention_of(place).fetch_or(kKnock);
  segment_.RingAfterFence(place);
}

// Takes the bit first and looks then: who comes after that sets it again. The two of Knock are in the other order.
void HostTransport::AnswerKnocks() {
  segment_.attention_of(segment_.place()).fetch_and(~kKnock);
  PlaceCard& card = CardOf(segment_.place());
  for (int place = 0; place < segment_.places(); place += 64) {
    uint64_t callers = card.callers[place / 64].exchange(0);
    for (int i = place; callers != 0; ++i, callers >>= 1) {
      if ((callers & 1) == 0 || i >= segment_.places() || i == segment_.place()) continue;
      const ProcessId process = segment_.IdAt(i);
      if (!segment_.PlaceOf(process) || PeerOf(process) != nullptr) continue;
      Link& link = engine_.LinkTo(process);
      if (!link.is_gone()) Open(link, i);
    }
  }
  for (size_t i = 0; i < open_.size(); ++i) {
    HostConnection& connection = open_[i]->connection;
    const bool ended = CardOf(connection.place()).state.load(std::memory_order_acquire) != PlaceCard::kHere;
    if (ended || connection.peer_reads_nothing()) connection.OnPeerGone(/*is_dead=*/false);
  }
  // A rank that lives and is lost is so for windows and collectives, too, of ranks that have no connection with it.
  if (!segment_.any_gave_up()) [[likely]] return;
  for (int place = 0; place < segment_.places(); ++place) {
    if (CardOf(place).state.load(std::memory_order_acquire) != PlaceCard::kOverwritten || place == segment_.place()) continue;
    const ProcessId process = segment_.IdAt(place);
    if (segment_.PlaceOf(process) && PeerOf(process) == nullptr) engine_.OnGone(process, /*left=*/false);
  }
}

// --- connections that are open ---

bool HostTransport::Flush(Link& link) {
  if (Peer* peer = PeerOf(link.peer())) return peer->connection.Write();
  Connect(link);
  return false;
}

size_t HostTransport::WriteAtOnce(Link& link, std::span<const iovec> pieces, size_t total, uint32_t /*flow*/) {
  return PeerOf(link.peer())->connection.WriteAtOnce(pieces, total);
}

bool HostTransport::Poll() {
  bool moved = false;
  if (HasKnock()) [[unlikely]] {
    AnswerKnocks();
    moved = true;
  }
  if (++polls_ % kLoopEvery == 0 && !open_.empty()) moved |= loop_.Dispatch(0);
  for (size_t i = 0; i < open_.size(); ++i) {
    Peer& peer = *open_[i];
    if (peer.watch.is_dead()) peer.connection.OnPeerGone(/*is_dead=*/true);
    moved |= peer.connection.Read();
    if (peer.connection.is_blocked() || peer.connection.has_pending_end()) moved |= peer.connection.Write();
  }
  return DropLost() | moved;
}

bool HostTransport::DropLost() {
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

ssize_t HostTransport::ReadPeer(HostConnection& connection, std::span<const iovec> to, uint64_t from, size_t bytes) {
  Peer& peer = PeerWith(connection);
  const size_t got = peer.memory == nullptr ? 0 : peer.memory->ReadSome(to, from, bytes);
  return got == 0 && peer.watch.Asks() ? -1 : static_cast<ssize_t>(got);
}

bool HostTransport::StaysForLongData() {
  if (presence() == nullptr || !presence()->is_sure()) return false;
  presence()->set_needed();
  return true;
}

void HostTransport::OnLeaving() {
  for (Peer* peer : open_) peer->connection.Leave();
}

// --- sleeping ---

bool HostTransport::Arm() {
  asleep_ = true;
  segment_.WillSleep();
  if (HasKnock() || !lost_.empty()) return false;
  return std::all_of(open_.begin(), open_.end(), [](Peer* peer) {
    return !peer->watch.is_dead() && peer->connection.Arm();
  });
}

void HostTransport::OnAwake() {
  asleep_ = false;
  segment_.IsAwake();
  for (Peer* peer : open_) peer->connection.OnAwake();
}

// What the bell says is looked at by who was asleep, and by each poll. Here it only must not stay readable: a ring that
// came late would end each sleep.
void HostTransport::OnReady(uint32_t) {
  if (!asleep_) segment_.Silence();
}

std::optional<HostTransport::Clock::time_point> HostTransport::deadline() const {
  if (ended_) return std::nullopt;
  return look_at_;
}

void HostTransport::OnTime(Clock::time_point now) {
  look_at_ = now + kLookEvery;
  for (size_t i = 0; i < open_.size(); ++i) {  // what they have sent may open others
    Peer& peer = *open_[i];
    if (!peer.watch.has_descriptor() && peer.watch.Asks()) peer.connection.OnPeerGone(/*is_dead=*/true);
  }
  DropLost();
  if (const std::string overwritten = FindOverwritten(); !overwritten.empty()) [[unlikely]] {
    LogWarning(overwritten + "; this rank cannot reach the ranks of this host any more");
    GiveUp();
  }
}

std::string HostTransport::Overwritten() const {
  for (const Peer* peer : open_) {
    if (!peer->connection.HasItsWords()) return "a counter of this rank in messages with " + peer->connection.link().Describe();
  }
  return {};
}

// The others find that on the card of this process.
void HostTransport::GiveUp() {
  End(PlaceCard::kOverwritten);
  for (int place = 0; place < segment_.places(); ++place) {
    const ProcessId process = segment_.IdAt(place);
    if (place != segment_.place() && segment_.PlaceOf(process)) engine_.OnGone(process, /*left=*/false);
  }
}

// --- the end ---

void HostTransport::EndOutput(Link& link) {
  if (Peer* peer = PeerOf(link.peer())) peer->connection.EndOutput();
}

void HostTransport::Drop(const Link& link) {
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
void HostTransport::End(PlaceCard::State state) {
  std::vector<int> told;
  for (const Peer* peer : open_) told.push_back(peer->connection.place());
  open_.clear();
  peers_.clear();
  bell_.End();
  loop_.set_nap(nullptr);
  if (std::exchange(ended_, true)) return;
  if (presence() != nullptr) presence()->Show(nullptr);
  PlaceCard& card = CardOf(segment_.place());
  card.state.store(state, std::memory_order_seq_cst);
  if (state == PlaceCard::kOverwritten) segment_.GiveUp();
  for (int place = 0; place < segment_.places(); ++place) {
    const bool calls = (card.callers[place / 64].load() >> (place % 64) & 1) != 0;
    if (calls || state == PlaceCard::kOverwritten) told.push_back(place);
  }
  for (const int place : told) {
    if (place != segment_.place() && segment_.PlaceOf(segment_.IdAt(place))) Knock(place);
  }
}

}  // namespace weft::mpi::host
